"""A trained model as the start of further training, such as last week's on this week's log."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from torch import Tensor, nn

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.files import part_of
from cuolr.policies.model_folder import digest_of_arrays, load_policy
from cuolr.policies.policy import RankingPolicy
from cuolr.training.run_folder import CHECKPOINT_FILE, load_checkpoint


@dataclass(frozen=True)
class WarmStart:
    """A model to start from.

    Attributes:
        policy: What it learned.
        folder: Its folder; None if it is in memory only.
        networks: The weights of all networks by name, also of those that the policy does not hold, such as critics;
            None if there is no checkpoint.
    """

    policy: RankingPolicy
    folder: Path | None = None
    networks: Mapping[str, Tensor] | None = None

    @classmethod
    def read(cls, folder: Path | str) -> Self:
        """The model in a folder, with its checkpoint if there is one."""
        folder = Path(folder)
        policy, checkpoint = load_policy(folder), part_of(folder, CHECKPOINT_FILE)
        return cls(policy, folder, _networks(checkpoint) if checkpoint.is_file() else None)

    @property
    def normaliser(self) -> Normaliser:
        """How the model scales features; training must go on with the same scale."""
        found = getattr(self.policy, "normaliser", None)
        if not isinstance(found, Normaliser):
            raise InputError(f"{self.name}: has no record of how features are scaled, so training cannot go on from it")
        return found

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return "the model" if self.folder is None else str(self.folder)

    @property
    def learner(self) -> str | None:
        """The name of its learner, if known."""
        name: str | None = self.policy.provenance.get("settings", {}).get("learner", {}).get("name")
        return name

    @property
    def sessions(self) -> int | None:
        """The number of sessions that it was trained on, if known."""
        number: int | None = self.policy.provenance.get("log", {}).get("sessions")
        return number

    @property
    def last(self) -> str | None:
        """The time of the latest session that it, or a model that it started from, was trained on, if known."""
        provenance = self.policy.provenance
        times = [provenance.get("log", {}).get("last")]
        if "warm_start" in provenance:
            times.append(provenance["warm_start"].get("last"))
        return None if None in times else max(times)

    def weights(self, name: str) -> Mapping[str, Tensor]:
        """The weights of one of the policy's networks; none if it does not have such a network."""
        networks: Mapping[str, nn.Module] = getattr(self.policy, "networks", dict)()
        return networks[name].state_dict() if name in networks else {}

    @property
    def text(self) -> str:
        """What training starts from, in one line."""
        sessions = "" if self.sessions is None else f", trained on {self.sessions:,} sessions"
        until = "" if self.last is None else f" until {self.last}"
        return f"starting from {self.name}: {self.learner or 'unknown learner'}{sessions}{until}"

    def described(self, first: str | None) -> dict[str, Any]:
        """What the new model records of it, as JSON values.

        Args:
            first: The time of the earliest session of the new log, if known.
        """
        new = _is_time(self.last) and _is_time(first) and str(self.last) < str(first)
        return {
            "model": None if self.folder is None else str(self.folder),
            "learner": self.learner,
            "sessions": self.sessions,
            "last": self.last,
            "sha256": digest_of_arrays(self.policy),
            # Whether the model may have been trained on sessions of the new log.
            "overlaps": not new,
        }


def _networks(checkpoint: Path) -> Mapping[str, Tensor] | None:
    """The weights of the networks in the checkpoint of a run."""
    match load_checkpoint(checkpoint):
        case {"state": {"learner": {"networks": dict(weights)}}} if all(
            isinstance(w, Tensor) for w in weights.values()
        ):
            return weights
        case {"state": {"learner": dict(state)}} if "networks" not in state:
            return None
        case _:
            raise InputError(f"{checkpoint}: not the checkpoint of a run; remove it to start from the model alone")


def load_networks(network: nn.Module, weights: Mapping[str, Tensor], start: WarmStart) -> None:
    """Set the weights of a network; raises if they are those of another one.

    Args:
        network: The network.
        weights: Its weights in the model that training starts from.
        start: That model.
    """
    own = {name: tuple(values.shape) for name, values in network.state_dict().items()}
    found = {name: tuple(values.shape) for name, values in weights.items()}
    for name in own.keys() | found.keys():
        if own.get(name) != found.get(name):
            raise InputError(
                f"{start.name}: has other networks: '{name}' is {found.get(name) or 'missing'}, expected "
                f"{own.get(name) or 'none'}; train with the settings of the model, and with lists of the same length"
            )
    network.load_state_dict(dict(weights))


def _is_time(text: str | None) -> bool:
    """Whether a text is a date and time, and no other number."""
    return text is not None and text.endswith("Z")
