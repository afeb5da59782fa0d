//! The same two-transaction lease claim in Postgres 15, driven by its own `pgbench`: same disk, same run.
//!
//! The table, its index and the order of a page are the contract's; beside it is the partial index that this order needs,
//! without which Postgres would sort the backlog for every page. One worker: a page of 100 is claimed with
//! `FOR UPDATE SKIP LOCKED` in one transaction, handed out whole, and acknowledged in the next. Postgres keeps no lanes:
//! it may serve an event whose predecessor waits.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::Context;
use pillarbox::measured::Measured;

use crate::consume::{Members, claim_and_acknowledge};
use crate::load::Sample;
use crate::rounds::{Run, median};
use crate::table::{Goal, Line};

const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";
const PORT: &str = "54329";
const PAGE: u32 = 100;
const PAGES_A_ROUND: u32 = 200;

const TABLE: &str = "
    CREATE TABLE bot_event_outbox (
      id bigserial PRIMARY KEY, event_type varchar(64) NOT NULL, telegram_id bigint, magnet_uid bigint, payload jsonb,
      created_at timestamptz NOT NULL DEFAULT now(), processed_at timestamptz, attempts int NOT NULL DEFAULT 0,
      claimed_at timestamptz, locked_until timestamptz, last_error text, last_attempt_at timestamptz,
      next_retry_at timestamptz);
    CREATE INDEX idx_bot_event_outbox_processed_id ON bot_event_outbox (processed_at, id);
    CREATE INDEX bot_event_outbox_page ON bot_event_outbox ((COALESCE(magnet_uid, telegram_id)), id)
      WHERE processed_at IS NULL;";
const FILL: &str = "
    INSERT INTO bot_event_outbox (event_type, telegram_id, magnet_uid, payload)
    SELECT 'new_partner', uid, uid, '{\"partnerUid\":1,\"partnerName\":\"Anna Example\"}'
    FROM generate_series(100001, 120000) AS uid;
    ANALYZE bot_event_outbox;
    CHECKPOINT;";
/// pgbench's `\\gset` takes one row, so the page comes as one row of arrays.
const CLAIM_AND_ACK: &str = "\
WITH claimed AS ( \
  UPDATE bot_event_outbox SET claimed_at = now(), locked_until = now() + interval '25 s' \
  WHERE id IN (SELECT id FROM bot_event_outbox \
               WHERE processed_at IS NULL AND (next_retry_at IS NULL OR next_retry_at <= now()) \
                 AND (locked_until IS NULL OR locked_until < now()) \
               ORDER BY COALESCE(magnet_uid, telegram_id), id LIMIT 100 FOR UPDATE SKIP LOCKED) \
  RETURNING *) \
SELECT array_agg(id)::text AS ids, array_agg(event_type) AS types, array_agg(telegram_id) AS chats, \
       array_agg(magnet_uid) AS members, array_agg(payload) AS payloads, array_agg(created_at) AS times, \
       array_agg(attempts) AS attempts FROM claimed \\gset
UPDATE bot_event_outbox SET processed_at = now(), claimed_at = NULL, locked_until = NULL \
WHERE id = ANY(:ids::bigint[]);
";

pub(crate) fn measure(run: &mut Run) -> anyhow::Result<()> {
    let server = Server::start(&run.dir.path().join("postgres"))?;
    server.psql(TABLE)?;
    let store = run.runtime.block_on(Measured::open(&run.dir.path().join("beside")))?;
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    let medians = run.against_floor(|runtime| {
        let sample = server.claim_and_acknowledge()?;
        theirs.push(sample.per_second());
        ours.push(claim_and_acknowledge(runtime, &store, Members::InOrder)?.per_second());
        Ok(sample)
    })?;
    run.runtime.block_on(store.close());
    let ratio = Some(medians.ratio);
    let what = "Postgres 15: claim + ack of pages of 100".to_owned();
    run.table.add(Line { what, unit: "/s", value: medians.per_second, ratio, goal: Goal::Shown });
    let ratio = Some(median(ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect()));
    let what = "  pillarbox beside it (ratio: to Postgres)".to_owned();
    run.table.add(Line { what, unit: "/s", value: median(ours), ratio, goal: Goal::AtLeast(2.0) });
    Ok(())
}

/// A cluster of our own on loopback, run as the user `postgres` if this is root, since Postgres refuses root.
struct Server {
    dir: PathBuf,
    as_root: bool,
}

impl Server {
    fn start(dir: &Path) -> anyhow::Result<Self> {
        anyhow::ensure!(Path::new(PROGRAMS).exists(), "{PROGRAMS} is missing; `make bench-postgres` installs it");
        std::fs::create_dir_all(dir)?;
        let as_root = text(&Command::new("id").arg("-u").output()?)?.trim() == "0";
        let server = Self { dir: dir.to_path_buf(), as_root };
        if as_root {
            let given = Command::new("chown").arg("postgres").arg(dir).status()?;
            // The run's own directory is closed to others; the cluster's stays so.
            let opened = Command::new("chmod").arg("711").arg(dir.parent().context("no parent")?).status()?;
            anyhow::ensure!(given.success() && opened.success(), "the cluster's directory could not be prepared");
        }
        let data = server.data();
        server.run("initdb", &["-D", &data, "-A", "trust", "-U", "bench", "--no-locale", "-E", "UTF8"])?;
        let options = format!("-p {PORT} -c listen_addresses=127.0.0.1 -c unix_socket_directories=");
        let log = server.dir.join("log").display().to_string();
        server.run("pg_ctl", &["-D", &data, "-l", &log, "-o", &options, "-w", "start"])?;
        Ok(server)
    }

    fn data(&self) -> String {
        self.dir.join("data").display().to_string()
    }

    fn run(&self, program: &str, arguments: &[&str]) -> anyhow::Result<String> {
        let path = format!("{PROGRAMS}/{program}");
        let mut command = if self.as_root {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", &path]);
            command
        } else {
            Command::new(path)
        };
        let output = command.args(arguments).current_dir(&self.dir).output().with_context(|| program.to_owned())?;
        anyhow::ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        text(&output)
    }

    fn psql(&self, sql: &str) -> anyhow::Result<String> {
        self.run(
            "psql",
            &["-h", "127.0.0.1", "-p", PORT, "-U", "bench", "-v", "ON_ERROR_STOP=1", "-c", sql, "postgres"],
        )
    }

    /// Fills the table and empties it page by page.
    fn claim_and_acknowledge(&self) -> anyhow::Result<Sample> {
        FILL.split(';').filter(|sql| !sql.trim().is_empty()).try_for_each(|sql| self.psql(sql).map(|_| ()))?;
        let script = self.dir.join("claim.sql");
        std::fs::write(&script, CLAIM_AND_ACK)?;
        let (pages, script) = (PAGES_A_ROUND.to_string(), script.display().to_string());
        let connection = ["-h", "127.0.0.1", "-p", PORT, "-U", "bench", "-n", "-M", "prepared", "-c", "1"];
        let said = self.run("pgbench", &[&connection[..], &["-t", &pages, "-f", &script, "postgres"]].concat())?;
        let tps = said.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()).context("no tps")?;
        let left = self.psql("SELECT count(*) FROM bot_event_outbox WHERE processed_at IS NULL")?;
        anyhow::ensure!(left.lines().any(|line| line.trim() == "0"), "pgbench left events: {left}");
        let events = u64::from(PAGE * PAGES_A_ROUND);
        Ok(Sample::of_count(events, std::time::Duration::from_secs_f64(f64::from(PAGES_A_ROUND) / tps.parse::<f64>()?)))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = self.run("pg_ctl", &["-D", &self.data(), "-m", "fast", "-w", "stop"]) {
            eprintln!("bench: postgres could not be stopped: {error:#}");
        }
    }
}

fn text(output: &Output) -> anyhow::Result<String> {
    Ok(String::from_utf8(output.stdout.clone())?)
}
