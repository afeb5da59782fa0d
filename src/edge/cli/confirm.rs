//! A word typed at a terminal, before something that is final.

use std::io::{self, BufRead, IsTerminal, Write};

use super::Exit;
use super::print::note;

/// Asks whether `what` is meant, on a terminal. Without one nobody can answer, and `--yes` is named.
///
/// # Errors
/// The terminal's.
pub(super) fn is_meant(word: &str, what: &str) -> io::Result<bool> {
    if !io::stdin().is_terminal() {
        note("this is final; add --yes if you mean it");
        return Ok(false);
    }
    let mut stderr = io::stderr().lock();
    write!(stderr, "This is final. Type `{word}` to {what}: ")?;
    stderr.flush()?;
    let mut typed = String::new();
    if io::stdin().lock().read_line(&mut typed)? == 0 {
        // Nobody pressed Enter: what is said next begins a line of its own.
        writeln!(stderr)?;
    }
    Ok(typed.trim() == word)
}

/// How a verb ends that was not meant: the command line lacks `--yes`, or a person thought better of it.
pub(super) fn refused() -> Exit {
    if io::stdin().is_terminal() { Exit::Failure } else { Exit::Usage }
}
