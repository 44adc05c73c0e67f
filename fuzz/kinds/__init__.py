"""The kinds of files that are damaged, one module for each room of the product that reads them."""
