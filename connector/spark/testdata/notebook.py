"""Runs a notebook of two cells with a kernel, restarts the kernel, and runs it again. Arguments: the master, and the
jar of the connector. It prints a line RESULT, and an object with the outputs of each run."""
import json
import sys

import nbclient
import nbformat
from nbclient.util import run_sync

master, jar = sys.argv[1], sys.argv[2]
cells = ["""from pyspark.sql import SparkSession
spark = SparkSession.builder.master(%r).appName("notebook").config("spark.jars", %r) \\
    .config("spark.ui.showConsoleProgress", False).getOrCreate()
kept = spark.range(1000).selectExpr("id", "id %% 3 as k").cache()
kept.count()""" % (master, jar), """import os
(os.getpid(), [list(row) for row in kept.groupBy("k").sum("id").orderBy("k").collect()])"""]
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3")


def run():
    outputs = []
    for number, cell in enumerate(notebook.cells):
        client.execute_cell(cell, number)
        outputs.append([o["data"]["text/plain"] for o in cell.outputs if o.output_type == "execute_result"])
    return outputs


with client.setup_kernel():
    first = run()
    run_sync(client.km.restart_kernel)(now=False)
    run_sync(client.kc.wait_for_ready)(timeout=60)
    print("RESULT", json.dumps({"first": first, "second": run()}), flush=True)
