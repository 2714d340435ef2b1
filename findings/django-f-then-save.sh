#!/usr/bin/env bash
# Django 6.1.3 on SQLite: `s.count = F("count") - 1; s.save()` reads the count back, and the next save() of the same object, for
# another field, writes it: what others have taken in between is back on the shelf. Django 5.2.19 takes a second piece instead.
# Exits with 1 if that has changed. It needs Python 3.12 or newer, and no server.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >probe.py <<'PYTHON'
import django
from django.conf import settings
from django.db import connection, models

settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}})
django.setup()


class Stock(models.Model):
    count = models.IntegerField()
    note = models.IntegerField()

    class Meta:
        app_label = "finding"


with connection.schema_editor() as editor:
    editor.create_model(Stock)
row = Stock.objects.filter(pk=Stock.objects.create(count=100, note=0).pk)
mine = row.get()
mine.count = models.F("count") - 1
mine.save()
row.update(count=models.F("count") - 5)
mine.note = 7
mine.save()
print(f"Django {django.get_version()}: 6 sold, {100 - row.get().count} gone")
PYTHON
for python in python3.14 python3.13 python3.12 python3; do
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>errors && break
    [[ $python != python3 ]] || { echo "no Python 3.12 or newer" >&2; exit 2; }
done
for version in 6.1.3 5.2.19; do
    "$python" -m venv "$version"
    "$version/bin/pip" install -q --disable-pip-version-check "django==$version" || exit 2
    "$version/bin/python" probe.py
done | tee seen
diff seen - <<'SEEN'
Django 6.1.3: 6 sold, 1 gone
Django 5.2.19: 6 sold, 7 gone
SEEN
