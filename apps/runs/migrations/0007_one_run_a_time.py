"""A due time and a place of a batch have one run each. The indexes are built beside the work that goes on."""

from django.db import migrations, models

_TIME = models.UniqueConstraint(
    fields=("schedule", "scheduled_for"), name="one_run_a_time", condition=models.Q(schedule__isnull=False)
)
_PLACE = models.UniqueConstraint(
    fields=("batch", "batch_key"), name="one_run_a_place", condition=models.Q(batch__isnull=False)
)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("runs", "0006_batches_and_times")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "CREATE UNIQUE INDEX CONCURRENTLY one_run_a_time ON runs_run (schedule_id, scheduled_for) "
                    "WHERE schedule_id IS NOT NULL",
                    "DROP INDEX CONCURRENTLY one_run_a_time",
                ),
                migrations.RunSQL(
                    "CREATE UNIQUE INDEX CONCURRENTLY one_run_a_place ON runs_run (batch_id, batch_key) "
                    "WHERE batch_id IS NOT NULL",
                    "DROP INDEX CONCURRENTLY one_run_a_place",
                ),
            ],
            state_operations=[
                migrations.AddConstraint(model_name="run", constraint=_TIME),
                migrations.AddConstraint(model_name="run", constraint=_PLACE),
            ],
        ),
    ]
