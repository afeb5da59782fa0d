//! Who is calling, and what that lets them do. The table of rights is here and nowhere else.

use crate::kernel::tenant::TenantId;

/// What a key may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Everything of its tenant.
    Admin,
    /// Posting events, and nothing else: a leaked key of a program that emits shows nobody anything.
    Publish,
    /// Looking.
    Read,
}

/// What a route asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// To change what exists, or to make something leave the house.
    Administer,
    /// To post events.
    Publish,
    /// To look.
    Read,
}

impl Role {
    /// Every role, in the order in which lists show them.
    pub(crate) const ALL: [Self; 3] = [Self::Admin, Self::Publish, Self::Read];

    /// The role's name.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Publish => "publish",
            Self::Read => "read",
        }
    }

    /// The role of that name.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }

    /// Whether this role has that right.
    pub(crate) const fn has(self, right: Right) -> bool {
        matches!((self, right), (Self::Admin, _) | (Self::Publish, Right::Publish) | (Self::Read, Right::Read))
    }
}

/// Whoever a key speaks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Whose key it is.
    pub(crate) tenant: TenantId,
    /// What it may be used for.
    pub(crate) role: Role,
}

#[cfg(test)]
mod tests {
    use super::{Right, Role};

    #[test]
    fn a_role_has_its_rights_and_no_others() {
        let table = [
            (Role::Admin, [true, true, true]),
            (Role::Publish, [false, true, false]),
            (Role::Read, [false, false, true]),
        ];
        for (role, expected) in table {
            assert_eq!([Right::Administer, Right::Publish, Right::Read].map(|right| role.has(right)), expected);
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
        for text in ["", "Admin", "admin ", "owner"] {
            assert_eq!(Role::parse(text), None);
        }
    }
}
