from ..exceptions import TableError
from .case_files import CaseFile
from .columns import parse_models
from .opening import open_table
from .outcome_columns import parse_outcomes
from .outcomes import OutcomeBatch, OutcomeFile
from .outputs import check_output
from .prediction_batch import PredictionBatch
from .predictions import PredictionFile
from .score_columns import read_confidences, read_probabilities
from .table import Table, require_columns
from .writing import check_writable, with_columns, write_file, write_table

__all__ = [
    "CaseFile",
    "OutcomeBatch",
    "OutcomeFile",
    "PredictionBatch",
    "PredictionFile",
    "Table",
    "TableError",
    "check_output",
    "check_writable",
    "open_table",
    "parse_models",
    "parse_outcomes",
    "read_confidences",
    "read_probabilities",
    "require_columns",
    "with_columns",
    "write_file",
    "write_table",
]
