// Groups the rows of a table, and sorts them.
const fs = require("fs");

const rows = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
rows.sort((x, y) => x[2] - y[2] || x[3] - y[3] || x[0] - y[0]);
const sums = new Map();
for (const [n, a, b, c] of rows) {
  const was = sums.get(a % 1000) || { b: 0, c: 0, n };
  sums.set(a % 1000, { b: was.b + b, c: Math.max(was.c, c), n: was.n });
}
fs.writeFileSync("out/node", JSON.stringify([...sums].sort((x, y) => x[0] - y[0])));
