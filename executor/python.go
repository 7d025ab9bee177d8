package executor

import _ "embed"

// PythonWorker is the program of an executor that runs functions of Python: a file for any interpreter from Python
// 3.8 on.
//
//go:embed python/bellows_worker.py
var PythonWorker []byte
