"""What is stored of a schedule's rule and what was compiled of it are kept in step by the database, whoever writes."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION claw_task_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Also of one that is stale already: whoever compiles it now holds its lock and has read the row of before.
    UPDATE jobs_schedule SET stale = true WHERE task_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER claw_task_changed AFTER UPDATE ON django_celery_beat_periodictask FOR EACH ROW
    WHEN ((OLD.task, OLD.enabled, OLD.start_time, OLD.expires, OLD.one_off,
           OLD.crontab_id, OLD.interval_id, OLD.clocked_id, OLD.solar_id)
          IS DISTINCT FROM
          (NEW.task, NEW.enabled, NEW.start_time, NEW.expires, NEW.one_off,
           NEW.crontab_id, NEW.interval_id, NEW.clocked_id, NEW.solar_id))
    EXECUTE FUNCTION claw_task_changed();

CREATE FUNCTION claw_times_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- The column of the periodic task that leads here.
    CASE TG_ARGV[0]
        WHEN 'crontab' THEN
            UPDATE jobs_schedule SET stale = true WHERE task_id IN
                (SELECT id FROM django_celery_beat_periodictask WHERE crontab_id = NEW.id);
        WHEN 'interval' THEN
            UPDATE jobs_schedule SET stale = true WHERE task_id IN
                (SELECT id FROM django_celery_beat_periodictask WHERE interval_id = NEW.id);
        WHEN 'clocked' THEN
            UPDATE jobs_schedule SET stale = true WHERE task_id IN
                (SELECT id FROM django_celery_beat_periodictask WHERE clocked_id = NEW.id);
    END CASE;
    RETURN NULL;
END $$;
CREATE TRIGGER claw_times_changed AFTER UPDATE ON django_celery_beat_crontabschedule FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION claw_times_changed('crontab');
CREATE TRIGGER claw_times_changed AFTER UPDATE ON django_celery_beat_intervalschedule FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION claw_times_changed('interval');
CREATE TRIGGER claw_times_changed AFTER UPDATE ON django_celery_beat_clockedschedule FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION claw_times_changed('clocked');

CREATE FUNCTION claw_schedule_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- A periodic task without its schedule would stand in the lists and do nothing.
    DELETE FROM django_celery_beat_periodictask WHERE id = OLD.task_id;
    RETURN NULL;
END $$;
CREATE TRIGGER claw_schedule_deleted AFTER DELETE ON jobs_schedule FOR EACH ROW
    EXECUTE FUNCTION claw_schedule_deleted();
"""

BACKWARD = """
DROP TRIGGER claw_schedule_deleted ON jobs_schedule;
DROP FUNCTION claw_schedule_deleted();
DROP TRIGGER claw_times_changed ON django_celery_beat_clockedschedule;
DROP TRIGGER claw_times_changed ON django_celery_beat_intervalschedule;
DROP TRIGGER claw_times_changed ON django_celery_beat_crontabschedule;
DROP FUNCTION claw_times_changed();
DROP TRIGGER claw_task_changed ON django_celery_beat_periodictask;
DROP FUNCTION claw_task_changed();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0005_schedules_and_graphs"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
