"""Measures of ranked lists, one value per query, from the true grades of the documents. One file per measure.

A measure is written as `ndcg@10` in Python, in the shell and in every table. Gains are 2^r − 1 as in the paper, or the
grade itself for names with `-linear`; a document is relevant if its grade is above 0.
"""

from cuolr.evaluation.measures.measure import MEASURES as MEASURES
from cuolr.evaluation.measures.measure import GradedLists as GradedLists
from cuolr.evaluation.measures.measure import Measure as Measure
from cuolr.evaluation.measures.measure import RankingMeasure as RankingMeasure
from cuolr.evaluation.measures.measure import WithoutRelevant as WithoutRelevant
from cuolr.evaluation.measures.measure import mean_over_queries as mean_over_queries
from cuolr.evaluation.measures.measure import measure_names as measure_names
from cuolr.evaluation.measures.measure import what_counts as what_counts
