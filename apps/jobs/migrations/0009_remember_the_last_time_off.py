"""What was due while scheduling was off is skipped after it too."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0008_add_zones_of_the_clock")]
    operations = [
        migrations.AddField(
            model_name="clock", name="last_off", field=models.JSONField(blank=True, db_default={}, default=dict)
        ),
    ]
