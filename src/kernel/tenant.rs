//! Whose something is: every event, endpoint and key belongs to one tenant, and a tenant sees its own only.

/// A tenant's name: 1 to 64 of `a-z0-9_-`, as the schema has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TenantId(String);

impl TenantId {
    /// The longest name, in characters.
    pub const LONGEST: usize = 64;

    /// The installation itself: it exists from the start, and what our own subsystems publish is its.
    pub fn installation() -> Self {
        Self("default".to_owned())
    }

    /// The tenant of that name; `None` if no tenant can be called so.
    pub fn parse(text: &str) -> Option<Self> {
        let is_fit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
        let is_name = (1..=Self::LONGEST).contains(&text.len()) && text.bytes().all(is_fit);
        is_name.then(|| Self(text.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the installation itself.
    pub fn is_installation(&self) -> bool {
        self.0 == "default"
    }
}

impl std::fmt::Display for TenantId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::TenantId;

    #[test]
    fn a_tenant_has_a_name_that_the_schema_takes() {
        for name in ["default", "a", "acme-2_x", &"a".repeat(64)] {
            assert!(TenantId::parse(name).is_some(), "{name}");
        }
        for name in ["", "A", "a b", "ü", "a.b", &"a".repeat(65)] {
            assert!(TenantId::parse(name).is_none(), "{name}");
        }
        assert!(TenantId::installation().is_installation());
        assert_eq!(TenantId::parse("default"), Some(TenantId::installation()));
    }
}
