# Writes the reference results of svr_test.go: pip install scikit-learn==1.9.1; python3 svr.py > svr.json
import json
import numpy as np
from sklearn.svm import SVR

def case(name, x, y, c, epsilon, weight=None):
    # LIBSVM keeps products of rows in single precision: with multiples of 1/32 they are exact.
    x, y = np.round(np.asarray(x, float) * 32) / 32, np.round(np.asarray(y, float), 6)
    m = SVR(kernel="linear", C=c, epsilon=epsilon, tol=1e-12, cache_size=500).fit(x, y, sample_weight=weight)
    w, b = m.coef_[0], m.intercept_[0]
    cost = c * (np.ones(len(y)) if weight is None else np.asarray(weight))
    objective = w @ w / 2 + (cost * np.maximum(0, abs(x @ w + b - y) - epsilon)).sum()
    cases.append({"name": name, "c": c, "epsilon": epsilon, "x": x.tolist(), "y": y.tolist(),
                  **({} if weight is None else {"weight": list(weight)}),
                  "w": w.tolist(), "b": float(b), "objective": float(objective)})

cases = []
rng = np.random.default_rng(4)
grid = np.array([[c, s] for c in (1, 2, 3, 4, 5) for s in (1, 2, 4, 7, 10)], float)   # 25 runs: cores and input
unit = (grid - grid.mean(0)) / grid.std(0)
stage = 12 + 30 * grid[:, 1] / grid[:, 0] + 2 * grid[:, 0]
for c in (0.1, 1, 10, 100):
    for epsilon in (0, 0.05, 0.5):
        case(f"duration of a stage, C={c}, epsilon={epsilon}", unit, (stage * rng.normal(1, .05, 25) - stage.mean()) / stage.std(), c, epsilon)
case("duration of a stage, not scaled", grid, stage, 1, 0.1)
case("logarithms", np.log(grid), np.log(stage * rng.normal(1, .05, 25)), 10, 0.01)
case("an outlier", unit, np.where(np.arange(25) == 7, 9, unit @ [1, -2] + rng.normal(0, .1, 25)), 1, 0.1)
case("weights", unit, unit @ [1, -2] + rng.normal(0, .3, 25), 2, 0.1, [0.5 ** ((24 - i) / 20) for i in range(25)])
for n, d in ((2, 1), (3, 2), (5, 3), (12, 4), (40, 3), (60, 5)):
    x = rng.normal(0, 1, (n, d))
    case(f"{n} random rows of {d}", x, x @ rng.normal(0, 2, d) + rng.normal(0, .5, n), 3, 0.2)
case("one row", [[3, 4]], [5], 1, 0.1)
case("equal rows, equal targets", [[3, 4]] * 6, [5] * 6, 1, 0.1)
case("equal rows, other targets", [[3, 4]] * 5, [1, 2, 3, 4, 10], 1, 0.1)
case("constant target", unit, [7] * 25, 10, 0.01)
case("two rows, far", [[0], [1]], [0, 100], 1, 0.1)
case("a column that is 0", np.c_[unit[:, 0], np.zeros(25)], unit[:, 0] * 3 + rng.normal(0, .2, 25), 5, 0.1)
case("collinear columns", np.c_[unit[:, 0], 2 * unit[:, 0]], unit[:, 0] * 3 + rng.normal(0, .2, 25), 5, 0.1)
print("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]")
