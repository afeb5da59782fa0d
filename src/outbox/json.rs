//! Events' data is JSON text that is looked at and handed on, and never written anew: what a number, an escape or the
//! order of fields looked like is the sender's.

use serde_json::value::RawValue;

/// The text of the object in `json`, without white space around it; `None` if it is no object, or no JSON.
pub(super) fn object(json: &str) -> Option<&str> {
    // Reads along the text and builds nothing, so that no number is too large and no nesting too deep.
    let raw: &RawValue = serde_json::from_str(json).ok()?;
    raw.get().starts_with('{').then_some(raw.get())
}

/// Whether JSON is nested deeper than so many levels.
pub(super) fn is_deeper(json: &str, levels: usize) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                if depth > levels {
                    return true;
                }
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{is_deeper, object};

    #[test]
    fn an_object_is_taken_as_it_is_written() {
        let odd = r#"{ "b":1e400,"a":0.10, "a":"\/\u2028\ud800", "deep":[[[{}]]] }"#;
        assert_eq!(object(odd), Some(odd));
        assert_eq!(object(" {}\n"), Some("{}"));
        for other in ["", "[]", "null", "\"{}\"", "{", "{}{}", "{'a':1}", "{\"a\":01}", "{}\0", "{\"a\":\"\n\"}"] {
            assert_eq!(object(other), None, "{other}");
        }
        let deep = "{\"a\":".repeat(30_000) + "1" + &"}".repeat(30_000);
        assert_eq!(object(&deep), Some(deep.as_str()));
    }

    #[test]
    fn levels_are_counted_outside_of_texts() {
        assert!(!is_deeper("{}", 1));
        assert!(is_deeper("{\"a\":[1]}", 1));
        assert!(!is_deeper(r#"{"{[{[":"[[\"[[\\"}"#, 1));
        assert!(!is_deeper("{\"a\":[],\"b\":[],\"c\":{}}", 2));
    }
}
