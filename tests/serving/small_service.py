"""A service of small models, whose scores are the features themselves."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cuolr.data.normalise import Normaliser
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.model_folder import save_policy
from cuolr.serving.app import create_app
from cuolr.serving.guard import ONLY_THIS_MACHINE, Access
from cuolr.serving.served_models import ServedModels
from cuolr.serving.service import Service
from cuolr.types import Candidates, FeatureColumn, FeatureRecipe

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it would rather have another client
    from starlette.testclient import TestClient as TestClient

PRICE, STOCK = FeatureColumn("price"), FeatureColumn("in_stock", "boolean")
COLOUR = FeatureColumn("colour", "category", ("blue", "red"))


def linear_model(folder: Path, weights: list[float], *columns: FeatureColumn) -> Path:
    """A model that scores by weights · features, with these columns or without names."""
    recipe = FeatureRecipe(columns) if columns else None
    features = np.zeros((2, len(weights)), np.float32)
    names = None if recipe is None else np.array(recipe.feature_names)
    fitted = Candidates(features, np.array([0, 2]), np.array(["q"]), None, names, recipe)
    save_policy(LinearPolicy(np.array(weights, np.float32), Normaliser.fit("none", fitted)), folder)
    return folder


def client_of(service: Service, access: Access = ONLY_THIS_MACHINE) -> TestClient:
    """Calls the service as this machine would; a defect is a 500, as for every caller."""
    return TestClient(create_app(service, access), base_url="http://127.0.0.1", raise_server_exceptions=False)


@contextmanager
def serving(*folders: Path, **settings: Any) -> Iterator[TestClient]:
    """A running service of these models."""
    access = settings.pop("access", Access())
    with client_of(Service(ServedModels.load(folders), **settings), access) as client:
        yield client


def documents(*prices: float | None) -> list[dict[str, Any]]:
    """Documents a, b, … with these prices."""
    return [{"id": chr(ord("a") + n), "features": {"price": price}} for n, price in enumerate(prices)]


def ids(answer: Any) -> list[str]:
    """The documents of a list."""
    return [document["id"] for document in answer["documents"]]
