"""Target 1: what a Dag file costs the Dag processor."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import contestants
import measure
from measure import OURS, Result

FLOOR = "Airflow's base classes"
HTTP = "http provider"
EMPTY = f"{contestants.OUR_OPERATORS} operators that do nothing"


def main() -> None:
    """Measure."""
    quick = measure.quick(__doc__, "few rounds, and no real Dag processor")
    with measure.airflow_home() as home, tempfile.TemporaryDirectory() as folder:
        results = [imports(15 if quick else 61)]
        results += parses(Path(folder), 7 if quick else 31)
        if not quick:
            results.append(dag_processor(Path(home)))
        measure.report("parsing", results)


def imports(rounds: int) -> Result:
    """Import all modules, in a process that has airflow.sdk, as the Dag processor's children have."""
    import airflow.sdk

    assert airflow.sdk
    work: dict[str, Callable[[], None]] = {
        OURS: contestants.import_ours,
        FLOOR: contestants.import_base_classes,
        EMPTY: contestants.define_operators,
        HTTP: contestants.import_http,
    }
    samples = measure.in_turn(
        {name: lambda done=done: 1000 * measure.cpu_seconds(done) for name, done in work.items()}, rounds
    )
    at_most = {FLOOR: 1.8, EMPTY: 1.5, HTTP: 0.2}
    return Result(1, "Import of all operators, sensors, triggers and links", "ms", samples, at_most)


def parses(folder: Path, rounds: int) -> list[Result]:
    """Parse and serialize a Dag of 20 tasks, in a process that has parsed none, and weigh what is stored."""
    import airflow.dag_processing.processor
    from airflow.dag_processing.dagbag import BundleDagBag
    from airflow.sdk import DAG
    from airflow.serialization.serialized_objects import DagSerialization

    assert airflow.dag_processing.processor
    assert DAG

    def parse(path: Path) -> list[dict[str, Any]]:
        bag = BundleDagBag(dag_folder=path, bundle_path=folder, bundle_name="bench", load_op_links=False)
        assert not bag.import_errors, bag.import_errors
        return [DagSerialization.to_dict(dag) for dag in bag.dags.values()]

    # What every parse needs, whatever is in the file, the Dag processor has loaded with its first file.
    plain = folder / "plain.py"
    plain.write_text('from airflow.sdk import DAG\nDAG("plain")\n')
    parse(plain)
    paths = {name: files[0] for name, files in contestants.write_dag_files(folder).items()}
    samples = measure.in_turn(
        {
            name: lambda path=path: 1000 * measure.cpu_seconds(lambda: parse(path))
            for name, path in sorted(paths.items(), key=lambda item: item[0] != OURS)
        },
        rounds,
    )
    sizes = {
        name: [measure.in_child(lambda path=path: len(json.dumps(parse(path))) / 1000)] for name, path in paths.items()
    }
    return [
        Result(1, "Cold parse of a Dag of 20 tasks", "ms", samples, {"EmptyOperator": 1.5}),
        Result(1, "The same Dag, serialized", "kB", dict(sorted(sizes.items())), {"HttpOperator": 1.0}),
    ]


def dag_processor(home: Path) -> Result:
    """Let a real Dag processor parse 20 files of each kind, and read from the database how long each took."""
    copies = 20
    folder = home / "dags"
    folder.mkdir(exist_ok=True)
    files = contestants.write_dag_files(folder, copies)
    names = {name: [path.stem for path in paths] for name, paths in files.items()}
    # The newest files are parsed first: those of all in turn, so that a busy minute slows them all down.
    for copy, paths in enumerate(zip(*files.values(), strict=True)):
        for path in paths:
            os.utime(path, (time.time() - copy, time.time() - copy))
    environment = {
        **os.environ,
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder),
        "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
    }
    airflow = [sys.executable, "-m", "airflow"]
    subprocess.run([*airflow, "db", "migrate"], env=environment, check=True, capture_output=True)
    subprocess.run([*airflow, "dag-processor", "--num-runs", "1"], env=environment, check=True, capture_output=True)
    code = (
        "import json; from airflow.models.dag import DagModel; from airflow.utils.session import create_session\n"
        "with create_session() as session:\n"
        "    print(json.dumps(dict(session.query(DagModel.dag_id, DagModel.last_parse_duration).all())))"
    )
    run = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    seconds = json.loads(run.stdout.splitlines()[-1])
    samples = {name: [1000 * seconds[dag] for dag in dags] for name, dags in names.items()}
    middle = {name: [statistics.median(values)] for name, values in samples.items()}
    return Result(1, "A file in a real Dag processor, by its own clock", "ms", dict(sorted(middle.items())))


if __name__ == "__main__":
    main()
