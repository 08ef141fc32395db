"""Takeovers and lost leases are counted a node; the index over these few events is built beside the work that goes on."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("runs", "0007_one_run_a_time")]
    operations = [
        AddIndexConcurrently(
            model_name="runevent",
            index=models.Index(
                fields=["at"], name="event_of_leases", condition=models.Q(kind__in=("adopted", "fenced"))
            ),
        ),
    ]
