#!/usr/bin/env python3
"""Solves the problems of problems.json with HiGHS and writes values.json beside it.

The 0-1 program is written down as in the paper: equations 4, 5, 7, 9-13 with the objective of equation 14, with F, O and eta.
It shares nothing with package leveling but the file with the problems.

    python3 -m venv /tmp/highs && /tmp/highs/bin/pip install highspy==1.16.0
    /tmp/highs/bin/python solve.py

Each problem has 60 s and one thread.
"""

import json
import os
import time

import highspy

ETA = 0.4
LIMIT = 60.0


def program(p):
    """Returns a HiGHS model of p, and eta * sum(F - O)."""
    h = highspy.Highs()
    for option, value in (("output_flag", False), ("threads", 1), ("time_limit", LIMIT),
                          ("mip_rel_gap", 0.0), ("mip_abs_gap", 1e-6), ("random_seed", 1)):
        h.setOptionValue(option, value)
    T, C = len(p["Fixed"]), p["Capacity"]
    sets = p["Sets"] or []
    # demand[t] collects (variable, amount); intervals are 1..T as in the paper.
    demand = {t: [] for t in range(1, T + 1)}
    sigma, objective = [], []
    total = sum(p["Fixed"])
    for s in sets:
        D, W = len(s["Demand"]), len(s["Demand"]) + s["Float"]
        total += sum(s["Demand"])
        x = {t: h.addBinary() for t in range(1, W + 1)}
        sigma.append(x)
        h.addConstr(sum(x.values()) == D)  # 10
        for t in range(1, s["Shuffle"] + 1):  # 12
            h.addConstr(x[t] == 1)
        if len(set(s["Demand"])) == 1:
            for t in x:
                demand[t].append((x[t], s["Demand"][0]))
        else:
            # work[k][t]: the k-th interval of work is done in t.
            work = [{t: h.addBinary() for t in x} for _ in range(D)]
            for k in range(D):
                h.addConstr(sum(work[k].values()) == 1)
                for t in x:
                    demand[t].append((work[k][t], s["Demand"][k]))
            for t in x:
                h.addConstr(sum(work[k][t] for k in range(D)) == x[t])
                for k in range(1, D):  # in order
                    before = [work[k - 1][u] for u in x if u < t]
                    now = [work[k][u] for u in x if u <= t]
                    h.addConstr(sum(now) - sum(before) <= 0) if before else h.addConstr(sum(now) <= 0)
        for t in range(1, W):  # 7
            restart = h.addVariable(lb=0)
            h.addConstr(restart - x[t + 1] + x[t] >= 0)
            objective.append((restart, p["Suspension"]))
        delay = h.addVariable(lb=0)
        for t in range(D, W + 1):  # 9
            h.addConstr(delay - t * x[t] >= -D)
        objective.append((delay, p["Delay"]))
    for j, s in enumerate(sets):  # 11-13: no work after the shuffle while a map runs, or before one does
        for m in s["After"] or []:
            for u in sigma[j]:
                if u > s["Shuffle"]:
                    for t in sigma[m]:
                        if t >= u:
                            h.addConstr(sigma[j][u] + sigma[m][t] <= 1)
    for t in demand:
        idle, over = h.addVariable(lb=0), h.addVariable(lb=0)
        fixed = p["Fixed"][t - 1]
        h.addConstr(sum(a * v for v, a in demand[t]) + idle - over == C - fixed)  # 4, 5
        objective += [(idle, ETA), (over, 1 - ETA)]
    h.minimize(sum(a * v for v, a in objective))  # 14
    return h, ETA * (T * C - total)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "problems.json")) as f:
        problems = json.load(f)
    solved = []
    for q in problems:
        began = time.process_time()
        h, constant = program(q["Problem"])
        info = h.getInfo()
        solved.append({
            "Name": q["Name"],
            "Proved": h.getModelStatus() == highspy.HighsModelStatus.kOptimal,
            "Value": round(info.objective_function_value, 6),
            "Bound": round(info.mip_dual_bound, 6),
            "Constant": round(constant, 6),
            "Seconds": round(time.process_time() - began, 2),
        })
        print(solved[-1], flush=True)
    with open(os.path.join(here, "values.json"), "w") as f:
        json.dump({"Solver": "HiGHS " + highspy.Highs().version(),
                   "Command": "solve.py, one thread, at most %.0f s per problem; Seconds are of CPU" % LIMIT,
                   "Solved": solved}, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
