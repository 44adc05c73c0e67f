import pytest

from cuolr.config import SettingError
from cuolr.errors import InputError
from cuolr.learners.counterfactual.unbiased_lambdamart import UnbiasedLambdaMartConfig
from cuolr.logs.aggregate import aggregate
from cuolr.training.presets.configure import configure
from tests.small_log import small_log
from tests.training.tasks import fit_log


@pytest.mark.parametrize("ranker", ["network", "ensemble"])
def test_there_is_no_other_ranker(ranker: str) -> None:
    with pytest.raises(SettingError, match="'ranker': pairwise debiasing weights the pairs of LambdaMART"):
        UnbiasedLambdaMartConfig(ranker=ranker)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"'learner\.ranker': pairwise debiasing .* found '" + ranker):
        configure("unbiased-lambdamart", settings={"learner.ranker": ranker})


def test_an_aggregated_log_is_refused() -> None:
    with pytest.raises(InputError, match="unbiased-lambdamart needs the clicks of each session"):
        fit_log(aggregate(small_log()), configure("unbiased-lambdamart"))
