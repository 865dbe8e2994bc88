"""scaler.joblib: the scaler of a series as the object that scikit-learn has for it.

The file is written without importing scikit-learn, which takes a second and 80 MB: it is a pickle
that names the class and holds the attributes that fitting sets. joblib.load reads it.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import pickle
from typing import Any

import numpy

NAME = "scaler.joblib"


def write(folder: str) -> None:
    """Makes the file from scaler.json, or takes it away where there can be none: the kind is none,
    or scikit-learn is not installed."""
    path = os.path.join(folder, NAME)
    made = _pickled(folder)
    if made is None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return
    beside = f"{path}.{os.getpid()}"
    try:
        with open(beside, "wb") as file:
            file.write(made)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
        raise


def _pickled(folder: str) -> bytes | None:
    try:
        version = importlib.metadata.version("scikit-learn")
        importlib.metadata.version("joblib")
    except importlib.metadata.PackageNotFoundError:
        return None
    try:
        with open(os.path.join(folder, "scaler.json"), encoding="utf-8") as file:
            scaler = json.load(file)
    except FileNotFoundError:
        return None
    kinds = {"standard": _standard, "minmax": _minmax, "robust": _robust}
    if scaler["kind"] not in kinds:
        return None
    name, state = kinds[scaler["kind"]](scaler)
    names = numpy.array(scaler["features"], dtype=object)
    state |= {"n_features_in_": len(names), "feature_names_in_": names, "_sklearn_version": version}
    # Protocol 3 has no frames: the state can be put between the class and what builds it.
    return (
        b"\x80\x03csklearn.preprocessing._data\n"
        + name.encode()
        + b"\n)\x81"
        + pickle.dumps(state, 3)[2:-1]
        + b"b."
    )


def _list(scaler: dict[str, Any], name: str) -> numpy.ndarray:
    return numpy.array(scaler[name], numpy.float64)


def _seen(scaler: dict[str, Any]) -> Any:
    counts = numpy.array(scaler["count"], numpy.int64)
    return counts[0] if len(set(counts.tolist())) == 1 else counts


def _standard(scaler: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    center, scale = _list(scaler, "center"), _list(scaler, "scale")
    return "StandardScaler", {
        "with_mean": True,
        "with_std": True,
        "copy": True,
        "mean_": center,
        "var_": _list(scaler, "var"),
        "scale_": scale,
        "n_samples_seen_": _seen(scaler),
    }


def _minmax(scaler: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    center, scale = _list(scaler, "center"), _list(scaler, "scale")
    low, high = _list(scaler, "min"), _list(scaler, "max")
    counts = numpy.array(scaler["count"])
    return "MinMaxScaler", {
        "feature_range": (0, 1),
        "copy": True,
        "clip": False,
        "scale_": 1 / scale,
        "min_": -center / scale,
        "data_min_": low,
        "data_max_": high,
        "data_range_": high - low,
        "n_samples_seen_": int(counts.max()),
    }


def _robust(scaler: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "RobustScaler", {
        "with_centering": True,
        "with_scaling": True,
        "quantile_range": (25.0, 75.0),
        "unit_variance": False,
        "copy": True,
        "center_": _list(scaler, "center"),
        "scale_": _list(scaler, "scale"),
    }
