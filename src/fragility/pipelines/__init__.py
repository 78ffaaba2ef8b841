"""From a table of data to a model in a file, and back, without running code from files."""

from .model_files import load_model, read_about, save_model
from .prediction import predict_frame
from .reader import ColumnReader
from .summary import TrainingSummary
from .training import TrainedPipeline, train_out_of_memory, train_pipeline

__all__ = [
    "ColumnReader",
    "TrainedPipeline",
    "TrainingSummary",
    "load_model",
    "predict_frame",
    "read_about",
    "save_model",
    "train_out_of_memory",
    "train_pipeline",
]
