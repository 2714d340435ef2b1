#!/usr/bin/env bash
# TypeORM 1.1.1 on SQLite (sql.js): save() of a stale entity with a version column is not refused; it writes the old count, and
# sets the version back. save() after a change of another column writes the old count too. It needs Node 20 or newer, and no
# server. Exits with 1 if that has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >probe.mjs <<'JS'
import { DataSource, EntitySchema } from 'typeorm';

const Stock = new EntitySchema({ name: 'Stock', columns: {
  id: { type: 'int', primary: true }, count: { type: 'int' }, note: { type: 'int', default: 0 }, version: { type: 'int', version: true } } });
const db = await new DataSource({ type: 'sqljs', entities: [Stock], synchronize: true }).initialize();
const stock = db.getRepository(Stock);
for (const [what, change] of [['a sale', (s) => { s.count -= 1; }], ['a note', (s) => { s.note = 7; }]]) {
  await db.query('DELETE FROM stock');
  await db.query('INSERT INTO stock (id, count, version) VALUES (1, 100, 1)');
  const mine = await stock.findOneBy({ id: 1 });
  await db.query('UPDATE stock SET count = count - 5, version = version + 1');
  change(mine);
  await stock.save(mine);
  const { count, version } = await stock.findOneBy({ id: 1 });
  console.log(`save() of ${what}, after another has taken 5: ${100 - count} gone, version ${version}`);
}
JS
npm install --silent --no-audit --no-fund typeorm@1.1.1 sql.js@1.13.0 reflect-metadata@0.2.2 >install.log 2>&1 || { tail install.log; exit 2; }
node probe.mjs | tee seen
diff seen - <<'SEEN'
save() of a sale, after another has taken 5: 1 gone, version 1
save() of a note, after another has taken 5: 0 gone, version 1
SEEN
