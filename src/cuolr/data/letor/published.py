"""The public learning-to-rank data sets: folder layouts, statistics and home pages."""

from collections.abc import Mapping
from dataclasses import dataclass

_LETOR_4 = "https://www.microsoft.com/en-us/research/project/letor-learning-rank-information-retrieval/"
_MSLR = "https://www.microsoft.com/en-us/research/project/mslr/"
_YAHOO = "https://webscope.sandbox.yahoo.com/ (dataset C14)"
_ISTELLA = "https://istella.ai/data/"


@dataclass(frozen=True)
class DatasetInfo:
    """A published data set.

    Attributes:
        name: Its name here.
        title: Its name in the literature.
        n_features: Features per document; None = whatever the files have.
        max_grade: The highest relevance grade; None = not known, the highest grade that occurs is used.
        folds: Number of cross-validation folds, in folders Fold1, Fold2, …; 0 = the files are in the folder itself.
        queries: Expected number of queries over all splits; None = not known.
        documents: Expected number of documents over all splits.
        home: Where to get it.
        prefix: Prefix of the file names.
        has_validation: Whether it comes with a validation split.
    """

    name: str
    title: str
    n_features: int | None
    max_grade: int | None
    folds: int
    queries: int | None
    documents: int | None
    home: str
    prefix: str = ""
    has_validation: bool = True


# Numbers of queries and documents as published.
CATALOGUE: Mapping[str, DatasetInfo] = {
    info.name: info
    for info in (
        DatasetInfo("mslr-web10k", "MSLR-WEB10K", 136, 4, 5, 10_000, 1_200_192, _MSLR),
        DatasetInfo("mslr-web30k", "MSLR-WEB30K", 136, 4, 5, 31_531, 3_771_125, _MSLR),
        DatasetInfo("yahoo-set1", "Yahoo! LETOR set 1", 700, 4, 0, 29_921, 709_877, _YAHOO, prefix="set1."),
        DatasetInfo("yahoo-set2", "Yahoo! LETOR set 2", 700, 4, 0, 6_330, 172_870, _YAHOO, prefix="set2."),
        DatasetInfo("istella", "Istella LETOR", 220, 4, 0, 33_018, 10_454_629, _ISTELLA, has_validation=False),
        DatasetInfo("istella-s", "Istella-S LETOR", 220, 4, 0, 33_018, 3_408_630, _ISTELLA),
        DatasetInfo("mq2007", "LETOR 4.0 MQ2007", 46, 2, 5, 1_692, 69_623, _LETOR_4),
        DatasetInfo("mq2008", "LETOR 4.0 MQ2008", 46, 2, 5, 784, 15_211, _LETOR_4),
        DatasetInfo("ohsumed", "LETOR 3.0 OHSUMED", 45, 2, 5, 106, 16_140, _LETOR_4),
        DatasetInfo("folder", "any folder of FoldN/{train,vali,test}.txt", None, None, 0, None, None, "your own"),
    )
}
