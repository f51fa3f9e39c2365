use std::fmt;

use tidal_keys::{EncodedKey, EntityId, Tag, encode_key, parse_key};

use crate::{
    CodecError,
    reader::{Reader, utf8},
    sealed::{seal, seal_in_place, unseal},
};

const KIND_GLOBAL: u8 = 0;
const KIND_COMMUNITY: u8 = 1;
const KIND_COHORT: u8 = 2;

const SCOPE_SUFFIX: &[u8] = b"scope";
const SCOPE_SET_SUFFIX: &[u8] = b"scope-set";

/// Whose signals an aggregate counts.
///
/// ```
/// use tidal_entities::Scope;
///
/// assert_eq!(Scope::Global.to_string(), "global");
/// assert_eq!(Scope::Cohort("region=Scotland".into()).to_string(), "cohort region=Scotland");
/// assert_eq!(Scope::Community(4).to_string(), "community 4");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Scope {
    /// Everybody's, also those of users who have left.
    Global,
    /// Those of the users who match a cohort, by its name.
    Cohort(String),
    /// Those of the users who are in a community, by its id.
    Community(u64),
}

impl Scope {
    /// `global`, `cohort` or `community`, as in the output of the command.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Cohort(_) => "cohort",
            Self::Community(_) => "community",
        }
    }

    /// The name of the cohort or the id of the community; nothing for the global scope.
    #[must_use]
    pub fn id(&self) -> Option<String> {
        match self {
            Self::Global => None,
            Self::Cohort(name) => Some(name.clone()),
            Self::Community(id) => Some(id.to_string()),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => formatter.write_str("global"),
            Self::Cohort(name) => write!(formatter, "cohort {name}"),
            Self::Community(id) => write!(formatter, "community {id}"),
        }
    }
}

/// The number that stands for a scope within one database. 0 is [`Scope::Global`], which has no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopeId(pub u32);

impl ScopeId {
    /// The number of [`Scope::Global`].
    pub const GLOBAL: Self = Self(0);
}

/// The number that stands for a set of scopes within one database.
///
/// 0 is the empty set, which has no row. Every signal counts globally, so the global scope is in no set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopeSetId(pub u32);

impl ScopeSetId {
    /// The set without scopes: signals that count globally and nowhere else.
    pub const EMPTY: Self = Self(0);
}

/// What the key of an interned scope or scope set stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum InternedId {
    /// The row holds a scope.
    Scope(ScopeId),
    /// The row holds a set of scopes.
    ScopeSet(ScopeSetId),
}

/// The key of a scope, in the system partition.
#[must_use]
pub fn scope_key(id: ScopeId) -> EncodedKey {
    encode_key(EntityId::new(u64::from(id.0)), Tag::Index, SCOPE_SUFFIX)
}

/// The key of a set of scopes, in the system partition.
#[must_use]
pub fn scope_set_key(id: ScopeSetId) -> EncodedKey {
    encode_key(EntityId::new(u64::from(id.0)), Tag::Index, SCOPE_SET_SUFFIX)
}

/// Tells which scope or set of scopes stands under a key with [`Tag::Index`] in the system partition.
///
/// # Errors
///
/// [`CodecError::Key`] and [`CodecError::ForeignKey`] if it is the key of neither.
///
/// ```
/// use tidal_entities::{InternedId, ScopeId, parse_interned_key, scope_key};
///
/// assert_eq!(parse_interned_key(&scope_key(ScopeId(3)))?, InternedId::Scope(ScopeId(3)));
/// # Ok::<(), tidal_entities::CodecError>(())
/// ```
pub fn parse_interned_key(key: &[u8]) -> Result<InternedId, CodecError> {
    const WHAT: &str = "scope or set of scopes";
    let (id, tag, suffix) = parse_key(key).map_err(|source| CodecError::Key { what: WHAT, source })?;
    match (u32::try_from(id.get()), tag, suffix) {
        (Ok(id), Tag::Index, SCOPE_SUFFIX) => Ok(InternedId::Scope(ScopeId(id))),
        (Ok(id), Tag::Index, SCOPE_SET_SUFFIX) => Ok(InternedId::ScopeSet(ScopeSetId(id))),
        _ => Err(CodecError::foreign_key(WHAT, key)),
    }
}

/// Lays out the row of a scope under its key.
#[must_use]
pub fn encode_scope(key: &[u8], scope: &Scope) -> Vec<u8> {
    let mut row = Vec::new();
    match scope {
        Scope::Global => row.push(KIND_GLOBAL),
        Scope::Cohort(name) => {
            row.push(KIND_COHORT);
            row.extend_from_slice(name.as_bytes());
        }
        Scope::Community(id) => {
            row.push(KIND_COMMUNITY);
            row.extend_from_slice(&id.to_le_bytes());
        }
    }
    seal_in_place(key, &mut row);
    row
}

/// Reads the row of a scope.
///
/// # Errors
///
/// [`CodecError`] if the row is not what [`encode_scope`] lays out under this key.
pub fn decode_scope(key: &[u8], value: &[u8]) -> Result<Scope, CodecError> {
    let mut reader = Reader::new("scope", unseal(key, value)?);
    let scope = match reader.u8()? {
        KIND_GLOBAL => Scope::Global,
        KIND_COHORT => Scope::Cohort(utf8("name of a cohort", reader.rest())?.to_owned()),
        KIND_COMMUNITY => Scope::Community(reader.u64()?),
        found => return Err(CodecError::UnknownKind { what: "kind of scope", found }),
    };
    reader.end()?;
    Ok(scope)
}

/// Lays out the row of a set of scopes under its key, in the order given.
///
/// Whoever interns sets sorts them first, so that a set has one number. The global scope is in none.
#[must_use]
pub fn encode_scope_set(key: &[u8], scopes: &[ScopeId]) -> Vec<u8> {
    let payload: Vec<u8> = scopes.iter().flat_map(|scope| scope.0.to_le_bytes()).collect();
    seal(key, &payload)
}

/// Reads the row of a set of scopes, in ascending order.
///
/// # Errors
///
/// [`CodecError`] if the row is not what [`encode_scope_set`] lays out under this key, or its scopes do not ascend: a
/// scope that stood there twice would count a signal twice.
pub fn decode_scope_set(key: &[u8], value: &[u8]) -> Result<Vec<ScopeId>, CodecError> {
    let mut reader = Reader::new("set of scopes", unseal(key, value)?);
    let mut scopes = Vec::new();
    let mut last = ScopeId::GLOBAL;
    while !reader.is_empty() {
        let scope = ScopeId(reader.u32()?);
        if scope <= last {
            return Err(CodecError::Value {
                what: "scope in a set of scopes",
                found: scope.0.to_string(),
                expected: "is above 0 and above the one before it",
            });
        }
        last = scope;
        scopes.push(scope);
    }
    Ok(scopes)
}
