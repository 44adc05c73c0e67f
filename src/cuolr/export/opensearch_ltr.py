"""`opensearch-ltr`: a model and its feature set for the Learning to Rank plug-in of OpenSearch."""

from cuolr.export import EXPORTERS
from cuolr.export.elasticsearch_ltr import ElasticsearchLtr


@EXPORTERS.register("opensearch-ltr")
class OpenSearchLtr(ElasticsearchLtr):
    """As for the plug-in of Elasticsearch, from which it comes.

    Recent versions send missing values where a node's `missing` says; earlier ones take them for 0. The exported model
    does not depend on it, because the feature set always gives a value.
    """
