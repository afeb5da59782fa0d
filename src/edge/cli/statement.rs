//! Whether what was typed at the prompt is whole: SQLite says so only of what it is given to run.

/// What the reader is in the middle of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum In {
    Sql,
    /// A quoted string or name, up to this character.
    Quoted(char),
    LineComment,
    BlockComment,
}

/// Whether `sql` ends with a semicolon that is part of neither a string, a comment, nor the body of a trigger.
pub(super) fn is_whole(sql: &str) -> bool {
    let bare = without_strings_and_comments(sql);
    let Some(statements) = bare.trim_end().strip_suffix(';') else { return false };
    let last = statements.to_ascii_uppercase();
    let opens_trigger = last.contains("CREATE TRIGGER") || last.contains("CREATE TEMP TRIGGER");
    !opens_trigger || last.trim_end().ends_with("END")
}

/// `sql` with a blank for every string, quoted name and comment; what is not closed is left out.
fn without_strings_and_comments(sql: &str) -> String {
    let mut bare = String::with_capacity(sql.len());
    let mut state = In::Sql;
    let mut characters = sql.chars().peekable();
    while let Some(c) = characters.next() {
        let next = characters.peek().copied();
        state = match (state, c, next) {
            (In::Sql, '\'' | '"' | '`', _) => In::Quoted(c),
            (In::Sql, '[', _) => In::Quoted(']'),
            (In::Sql, '-', Some('-')) => In::LineComment,
            (In::Sql, '/', Some('*')) => {
                characters.next();
                In::BlockComment
            }
            (In::Sql, _, _) => {
                bare.push(c);
                In::Sql
            }
            (In::BlockComment, '*', Some('/')) => {
                characters.next();
                In::Sql
            }
            (In::Quoted(end), _, _) if c == end => In::Sql,
            (In::LineComment, '\n', _) => In::Sql,
            (other, _, _) => other,
        };
        if state != In::Sql && !bare.ends_with(' ') {
            bare.push(' ');
        }
    }
    // An open string or block comment goes on in the next line, so the semicolon before it does not end what was typed.
    if matches!(state, In::Quoted(_) | In::BlockComment) {
        bare.push('…');
    }
    bare
}

#[cfg(test)]
mod tests {
    use super::is_whole;

    #[test]
    fn a_statement_ends_with_its_own_semicolon() {
        for whole in [
            "SELECT 1;\n",
            "SELECT ';' ; ",
            "SELECT 1; -- done\n",
            "SELECT 'it''s';\n",
            "SELECT 1 /* ; */;",
            "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; END;",
            ";",
        ] {
            assert!(is_whole(whole), "{whole}");
        }
        for part in [
            "SELECT 1\n",
            "SELECT 'a;\n",
            "SELECT \"a;\n",
            "SELECT 1 -- ;\n",
            "SELECT 1; /* and\n",
            "SELECT [a;",
            "create temp trigger t AFTER INSERT ON a BEGIN SELECT 1;\n",
            "",
        ] {
            assert!(!is_whole(part), "{part}");
        }
    }
}
