"""The bodies that the service takes and gives, which are also its OpenAPI description."""

from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from cuolr.data.feature_options import ONE_QUERY
from cuolr.logs.importing.import_options import OPTIONAL, REQUIRED
from cuolr.logs.served_log import PART_COLUMNS

# NumPy drops the character NUL at the end of a string, which could merge two documents.
Id = Annotated[
    str, StringConstraints(min_length=1, max_length=512, pattern=r"^[^\x00]+$"), Field(coerce_numbers_to_str=True)
]
# An object of more fields is refused before they are looked at.
MAX_FIELDS = 20
SCALAR = {"type": ["number", "string", "boolean", "null"]}
FEATURES = {
    "description": "By name, as the columns of the training data; null = missing. A list, if the model has no names.",
    "anyOf": [
        {"type": "object", "additionalProperties": SCALAR},
        {"type": "array", "items": {"type": ["number", "null"]}},
    ],
}


def _free(event: str) -> str:
    """An event becomes a column of the imported log, and must not replace another."""
    if event in {*PART_COLUMNS, *REQUIRED, *OPTIONAL} - {"click", "reward"}:
        raise ValueError(f"'{event}' is the name of a column of the log")
    return event


class Call(BaseModel):
    """A body that has no other fields than these."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, value: Any) -> Any:
        """A million other fields would be a million errors."""
        if isinstance(value, dict) and len(value) > MAX_FIELDS:
            raise ValueError(f"expected at most {len(cls.model_fields)} fields, found {len(value):,}")
        return value


class DocumentToRank(Call):
    """A document of a query. Values of features are checked with the recipe of the model."""

    id: Id
    features: Annotated[dict[str, Any] | list[Any], WithJsonSchema(FEATURES)] = Field(default_factory=list)


class RankCall(Call):
    """The documents of a query, to be ranked."""

    query: Id = ONE_QUERY
    documents: Annotated[list[DocumentToRank], FailFast()] = Field(min_length=1)
    k: int | None = Field(None, ge=1, description="Length of the list; null = as the service was started.")
    model: Id | None = Field(None, description="Name of the model; null = the first.")
    user: Id | None = Field(None, description="Id of the user, for the log.")


class RankCalls(Call):
    """Several queries at once."""

    requests: Annotated[list[RankCall], FailFast()] = Field(min_length=1)


class RankedDocument(BaseModel):
    """A document of a list.

    `propensity` is the probability that it is shown here, given the documents above; 1 unless lists are randomised.
    """

    id: str
    position: int
    score: float | None
    propensity: float


class RankAnswer(BaseModel):
    """The list to show. `request_id` is for /events, and null if the service keeps no log."""

    request_id: str | None
    query: str
    model: str
    version: str
    documents: list[RankedDocument]


class RankAnswers(BaseModel):
    """The lists of several queries, in the order of the requests."""

    results: list[RankAnswer]


class Event(Call):
    """What a user did with a shown document.

    `click`, or an action of your own, such as `purchase`; `reward` is what learners maximise. Events with the same
    `event_id` for one request count once.
    """

    request_id: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    document: Id
    event: Annotated[str, StringConstraints(pattern="^[a-z][a-z0-9_]{0,39}$"), AfterValidator(_free)] = "click"
    value: float = Field(1.0, ge=0, le=1e30, allow_inf_nan=False)
    event_id: Id | None = None


class Events(Call):
    """Several events at once."""

    events: Annotated[list[Event], FailFast()] = Field(min_length=1)


class EventsAnswer(BaseModel):
    """How many events were taken."""

    accepted: int


class Health(BaseModel):
    """`ok`: the service ranks."""

    status: str


class FeatureOfModel(BaseModel):
    """A feature that documents must have; `levels` are those of a category."""

    name: str
    kind: str
    levels: list[str]


class ModelAnswer(BaseModel):
    """A model that is served. `version` is a hash of its content."""

    name: str
    version: str
    policy: str
    scores: bool
    features: list[FeatureOfModel]


class ModelsAnswer(BaseModel):
    """The models; the first is the default."""

    models: list[ModelAnswer]


class ErrorOfCall(BaseModel):
    """What went wrong: a type for programs, a line for people."""

    type: str
    message: str


class ErrorAnswer(BaseModel):
    """A refused call."""

    error: ErrorOfCall
