//! `pillarbox sql`: a person's own statements, from the argument, from stdin, or at a prompt.

use std::io::{self, BufRead, BufWriter, IsTerminal, Read, StdoutLock, Write};

use anyhow::Context;
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::args::{Location, SqlArgs};
use super::print::{Printer, note};
use super::{Exit, Form, statement};
use crate::config::Config;
use crate::kernel::store::{Access, Cell, Shell, ShellError, Shown};

/// Rows of one table on a terminal; a longer answer is several, so that it need not be in memory as a whole.
const TABLE_ROWS: usize = 1_000;

/// Runs the statements, or the prompt.
///
/// # Errors
/// The configuration's, [`OpenError`](crate::kernel::store::OpenError), or a statement's.
pub(super) fn run(location: &Location, args: SqlArgs) -> anyhow::Result<Exit> {
    let store = Config::load(location.sources(&args.overrides.set))?.store;
    let access = if args.write { Access::Write } else { Access::Read };
    let shell = Shell::open(&store.data_dir, access, store.busy_timeout)?;
    let mut screen = Screen::new(Printer::stdout(args.printed));
    match args.statement {
        Some(sql) => screen.run(&shell, &sql)?,
        None if io::stdin().is_terminal() => prompt(&shell, &mut screen, access)?,
        None => {
            let mut sql = String::new();
            io::stdin().lock().read_to_string(&mut sql).context("cannot read SQL from stdin")?;
            screen.run(&shell, &sql)?;
        }
    }
    if shell.is_in_transaction() {
        note("the transaction was not committed, so it was rolled back; end it with COMMIT");
        return Ok(Exit::Failure);
    }
    Ok(Exit::Ok)
}

/// Reads lines until a statement is whole, runs it, and goes on after an error.
fn prompt(shell: &Shell, screen: &mut Screen, access: Access) -> anyhow::Result<()> {
    let may = if access == Access::Read { "read-only; --write allows changes" } else { "changes are allowed" };
    note(&format!("{} ({may}). End a statement with `;`, and this with Ctrl-D.", shell.file().display()));
    let mut sql = String::new();
    loop {
        // The prompt is not data, and a closed stderr is no reason to stop.
        let _ = write!(io::stderr(), "{}", invitation(shell, &sql));
        if io::stdin().lock().read_line(&mut sql)? == 0 {
            note("");
            return Ok(());
        }
        if sql.trim_start().starts_with('.') {
            note("there are no dot commands here; SELECT name FROM sqlite_schema lists the tables");
            sql.clear();
        } else if statement::is_whole(&sql) {
            match screen.run(shell, &sql) {
                Err(ShellError::Output(error)) => return Err(error.into()),
                Err(error) => note(&error.to_string()),
                Ok(()) => {}
            }
            sql.clear();
        }
    }
}

/// An open transaction is shown, since it holds up every other writer.
fn invitation(shell: &Shell, typed: &str) -> &'static str {
    match (typed.is_empty(), shell.is_in_transaction()) {
        (false, _) => "...> ",
        (true, true) => "sql (in a transaction)> ",
        (true, false) => "sql> ",
    }
}

/// What rows are shown on.
struct Screen {
    printer: Printer<BufWriter<StdoutLock<'static>>>,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Screen {
    fn new(printer: Printer<BufWriter<StdoutLock<'static>>>) -> Self {
        Self { printer, columns: Vec::new(), rows: Vec::new() }
    }

    fn run(&mut self, shell: &Shell, sql: &str) -> Result<(), ShellError> {
        let done = shell.run(sql, |shown| self.show(shown));
        self.rows.clear();
        // Rows before the error are part of the answer.
        self.printer.flush()?;
        done
    }

    fn show(&mut self, shown: Shown) -> io::Result<()> {
        match (shown, self.printer.form()) {
            (Shown::Columns(columns), _) => {
                self.columns = distinct(columns);
                self.rows.clear();
            }
            (Shown::Row(cells), Form::Json) => {
                self.printer.json(&JsonRow { columns: &self.columns, cells: &cells })?;
            }
            (Shown::Row(cells), Form::Table) => {
                self.rows.push(cells.iter().map(text).collect());
                if self.rows.len() >= TABLE_ROWS {
                    self.flush_table()?;
                }
            }
            (Shown::Ended(_), Form::Json) => {}
            (Shown::Ended(changed), Form::Table) => {
                if !self.rows.is_empty() {
                    self.flush_table()?;
                }
                self.printer.flush()?;
                match changed {
                    Some(1) => note("1 row changed"),
                    Some(n) => note(&format!("{n} rows changed")),
                    None => {}
                }
            }
        }
        Ok(())
    }

    fn flush_table(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.rows);
        self.printer.table(&self.columns, rows.into_iter())
    }
}

/// Names a JSON object can have side by side: a second `id` becomes `id:1`, as in SQLite's own subqueries.
fn distinct(columns: Vec<String>) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(columns.len());
    for column in columns {
        let mut name = column.clone();
        let mut n = 0;
        while names.contains(&name) {
            n += 1;
            name = format!("{column}:{n}");
        }
        names.push(name);
    }
    names
}

/// A row as a JSON object, its columns in their order.
struct JsonRow<'a> {
    columns: &'a [String],
    cells: &'a [Cell],
}

impl Serialize for JsonRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_map(Some(self.cells.len()))?;
        for (column, cell) in self.columns.iter().zip(self.cells) {
            match cell {
                Cell::Null => row.serialize_entry(column, &())?,
                Cell::Integer(number) => row.serialize_entry(column, number)?,
                Cell::Real(number) => row.serialize_entry(column, number)?,
                Cell::Text(_) | Cell::Blob(_) => row.serialize_entry(column, &text(cell))?,
            }
        }
        row.end()
    }
}

/// A value as text; a BLOB in hexadecimal.
fn text(cell: &Cell) -> String {
    match cell {
        Cell::Null => "NULL".to_owned(),
        Cell::Integer(number) => number.to_string(),
        Cell::Real(number) => number.to_string(),
        Cell::Text(text) => text.clone(),
        Cell::Blob(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_one_name_are_told_apart() {
        let names = ["id", "id", "n", "id"].map(str::to_owned).to_vec();
        assert_eq!(distinct(names), ["id", "id:1", "n", "id:2"]);
    }

    #[test]
    fn a_row_is_an_object_in_the_order_of_its_columns() {
        let columns = ["z", "a", "m", "b", "r"].map(str::to_owned);
        let cells =
            [Cell::Null, Cell::Integer(-1), Cell::Text("x\"y".into()), Cell::Blob(vec![0, 255]), Cell::Real(0.5)];
        let json = serde_json::to_string(&JsonRow { columns: &columns, cells: &cells }).expect("JSON");
        assert_eq!(json, r#"{"z":null,"a":-1,"m":"x\"y","b":"00ff","r":0.5}"#);
    }
}
