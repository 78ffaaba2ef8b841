"""What the eight UCI data sets are: files, columns, and which class is the positive one."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from experiments.data.text_table import TextTable, names
from fragility.datasets.files import DataFile

_ARCHIVE = "https://archive.ics.uci.edu/ml/machine-learning-databases/"


def _file(
    address: str, checksum: str, name: str = "", licence: str = "CC BY 4.0", note: str = ""
) -> DataFile:
    """A file of the archive, by default of the name that it has there."""
    name = name or address.rpartition("/")[2]
    return DataFile("uci", name, checksum, _ARCHIVE + address, licence, note)


_CELL = names(
    "radius, texture, perimeter, area, smoothness, compactness, concavity, concave points, "
    "symmetry, fractal dimension"
)

_GERMAN_COLUMNS = names(
    "checking account, duration, credit history, purpose, amount, savings, employment since, "
    "instalment rate, status and sex, other debtors, residence since, property, age, other "
    "instalments, housing, credits here, job, dependants, telephone, foreign worker"
)
_GERMAN_NUMBERS = names(
    "duration, amount, instalment rate, residence since, age, credits here, dependants"
)

SETS = {
    "coimbra": TextTable(
        abbreviation="BCC",
        title="Breast Cancer Coimbra",
        file=_file(
            "00451/dataR2.csv", "68c56c7e7a38dfff1046a8b35e5b3afc17229eff7fb9d8dca7053442b1c37e7e"
        ),
        columns=names(
            "Age, BMI, Glucose, Insulin, HOMA, Leptin, Adiponectin, Resistin, MCP.1, Classification"
        ),
        label="Classification",
        positive="2",
        target_names=("healthy", "patient"),
        header=True,
    ),
    "liver": TextTable(
        abbreviation="LD",
        title="Liver Disorders (BUPA)",
        file=_file(
            "liver-disorders/bupa.data",
            "a166a3e7a6f4dc41aaaedc59a107e57d8adcaeb8821f0873d756982f1ea74c92",
        ),
        columns=("mcv", "alkphos", "sgpt", "sgot", "gammagt", "drinks", "selector"),
        label="selector",
        positive="2",
        target_names=("selector 1", "selector 2"),
        remark=(
            "The selector splits the data into two parts, by the donors' account; it is no "
            "diagnosis, though much of the literature uses it as one."
        ),
    ),
    "ilpd": TextTable(
        abbreviation="ILDP",
        title="Indian Liver Patient Dataset",
        file=_file(
            "00225/Indian%20Liver%20Patient%20Dataset%20(ILPD).csv",
            "84feac16488de5cf89bd22bd802c77f25841fe93e9ddd32355683e94d46c3425",
            "ilpd.csv",
        ),
        columns=names(
            "age, male, total bilirubin, direct bilirubin, alkaline phosphotase, sgpt, sgot, "
            "total protein, albumin, albumin/globulin, patient"
        ),
        label="patient",
        positive="1",
        target_names=("no liver patient", "liver patient"),
        text={"male": "Male"},
        missing="",
        remark="Four values of albumin/globulin are not known.",
    ),
    "german": TextTable(
        abbreviation="SG",
        title="Statlog (German Credit Data)",
        file=_file(
            "statlog/german/german.data",
            "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
        ),
        columns=(*_GERMAN_COLUMNS, "credit"),
        label="credit",
        positive="2",
        target_names=("good credit", "bad credit"),
        text=dict.fromkeys(name for name in _GERMAN_COLUMNS if name not in _GERMAN_NUMBERS),
        separator=None,
    ),
    "prognostic": TextTable(
        abbreviation="BCW",
        title="Breast Cancer Wisconsin (Prognostic)",
        file=_file(
            "breast-cancer-wisconsin/wpbc.data",
            "f2bd5ccdb6086fa832370dc043319907430cf6bfcfd3b96a3961a357be345c8e",
        ),
        columns=(
            "id",
            "outcome",
            "time",
            *(f"{kind} {what}" for kind, what in product(("mean", "error of", "worst"), _CELL)),
            "tumour size",
            "lymph nodes",
        ),
        label="outcome",
        positive="R",
        target_names=("not recurrent", "recurrent"),
        left_out=("id", "time"),
        missing="?",
        remark=(
            "The time to recurrence, or without disease, is left out: it is known only with the "
            "outcome. Four values of lymph nodes are not known."
        ),
    ),
    "diabetes": TextTable(
        abbreviation="DI",
        title="Pima Indians Diabetes",
        file=_file(
            "pima-indians-diabetes/pima-indians-diabetes.data",
            "06f5b7c2cd7bca686fda4f92eab5f61e7ff6426a9acefa2e3dda04fc54293cf5",
            licence="public",
            note="The repository has withdrawn this data set: you may need a copy from elsewhere.",
        ),
        columns=names(
            "pregnancies, glucose, blood pressure, skin thickness, insulin, bmi, pedigree, age, "
            "diabetes"
        ),
        label="diabetes",
        positive="1",
        target_names=("no diabetes", "diabetes"),
        remark=(
            "A 0 in glucose, blood pressure, skin thickness, insulin or bmi stands for unknown and "
            "is kept as it is."
        ),
    ),
    "ionosphere": TextTable(
        abbreviation="IO",
        title="Ionosphere",
        file=_file(
            "ionosphere/ionosphere.data",
            "46d52186b84e20be52918adb93e8fb9926b34795ff7504c24350ae0616a04bbd",
        ),
        columns=(
            *(f"pulse {i} {part}" for i, part in product(range(1, 18), ("real", "imaginary"))),
            "return",
        ),
        label="return",
        positive="g",
        target_names=("bad", "good"),
        remark="The second column is 0 everywhere.",
    ),
    "sonar": TextTable(
        abbreviation="CB",
        title="Connectionist Bench (Sonar, Mines vs. Rocks)",
        file=_file(
            "undocumented/connectionist-bench/sonar/sonar.all-data",
            "e90434cdbf00fcf93ffa911fe447ae25606979658e60f1d32e155c3b5240234d",
        ),
        columns=(*(f"band {i}" for i in range(1, 61)), "object"),
        label="object",
        positive="M",
        target_names=("rock", "mine"),
    ),
}

GERMAN_NUMERIC = replace(
    SETS["german"],
    title="Statlog (German Credit Data), coded as numbers",
    file=_file(
        "statlog/german/german.data-numeric",
        "2752b044394958ab6dd193a0b56ca0f0b3a2d8bc7cb8c008e35a5e84bbec02f8",
    ),
    columns=(*(f"attribute {i}" for i in range(1, 25)), "credit"),
    text={},
    remark="The numbers are the donors'; what each column means is not recorded.",
)

LIVER_BY_DRINKS = replace(
    SETS["liver"],
    label="drinks",
    target_names=("fewer drinks", "more drinks"),
    left_out=("selector",),
    remark="The label is the number of drinks; the selector is left out.",
)
