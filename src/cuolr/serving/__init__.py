"""The service: ranks over HTTP, writes down what was shown and clicked, randomises and interleaves lists."""
