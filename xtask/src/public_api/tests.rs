use std::path::Path;

use super::{LIBRARIES, lines, of_library, sources::Sources};

/// Compares what a library offers with its snapshot.
fn assert_pinned(package: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let name = format!("public_api_{}", package.replace('-', "_"));
    settings.bind(|| insta::assert_snapshot!(name, of_library(package).unwrap()));
}

#[test]
fn keys_are_pinned() {
    assert_pinned("tidal-keys");
}

#[test]
fn storage_is_pinned() {
    assert_pinned("tidal-storage");
}

#[test]
fn entities_are_pinned() {
    assert_pinned("tidal-entities");
}

#[test]
fn the_database_is_pinned() {
    assert_pinned("tidal-db");
}

#[test]
fn only_libraries_are_listed() {
    assert!(LIBRARIES.iter().all(|package| of_library(package).is_ok()));
    let failure = of_library("tidal-cli").unwrap_err();
    assert!(failure.starts_with("tidal-cli is no library; take one of tidal-keys, "), "{failure}");
}

/// Every kind of item in one crate, and beside each what must not be listed: its name has `private` in it.
const FILES: [(&str, &str); 4] = [
    (
        "src/lib.rs",
        r#"
        mod deep;
        mod shown;
        pub mod open { pub fn inside() {} pub(crate) fn private_inside() {} }
        #[cfg(test)] pub mod private_tests { pub fn private_test() {} }
        #[doc(hidden)] pub mod private_hidden { pub struct PrivateHidden; }

        pub use deep::{deeper::{self as renamed_module, Bottom as Renamed}, *};
        pub use shown::{Shape, Sealed, Tuple, Unit};
        pub use open::inside as second_name;
        #[cfg(feature = "extra")] pub use shown::Extra;
        pub use std::time::Duration;
        pub use other_crate::{nested::Thing as OtherThing, whole::*};

        pub const LIMIT: usize = 4 * 1024;
        pub static NAME: &str = "name";
        pub type Result<T, E = Failure> = std::result::Result<T, E>;
        const PRIVATE_LIMIT: usize = 1;
        fn private_function() {}
        pub(crate) fn private_to_the_crate() {}
        #[doc(hidden)] pub fn private_by_documentation() {}
        #[cfg(all(test, feature = "extra"))] pub fn private_to_tests() {}

        #[must_use = "or lose it"]
        pub const unsafe fn long<'a, T: Clone + Default>(mut first_argument: &'a [T], second_argument: impl Fn(u8) -> T + 'a,
            (third, _): (u64, u64)) -> Option<(u64, &'a T)> where T: Send { None }
        pub async fn later() {}
        #[cfg(not(feature = "extra"))] pub fn without_extra() {}
        #[cfg(any(not(test), feature = "extra"))] pub fn always() {}
        #[deprecated] pub extern "C" fn foreign(byte: u8) -> u8 { byte }

        use thiserror::Error;
        #[non_exhaustive]
        #[derive(Debug, Error)]
        pub enum Failure {
            Io(#[from] std::io::Error),
            #[non_exhaustive] Named { path: String, #[source] source: Box<Failure> },
            #[doc(hidden)] PrivateVariant,
        }

        #[macro_export] macro_rules! shout { () => {} }
        macro_rules! private_macro { () => {} }
        "#,
    ),
    (
        "src/deep/mod.rs",
        r"
        pub mod deeper;
        pub fn by_glob() {}
        fn private_by_glob() {}
        impl super::shown::Shape { pub fn from_another_file(self: Box<Self>) {} }
        ",
    ),
    ("src/deep/deeper.rs", "pub struct Bottom<'a, T = u8> where T: Copy { pub field: &'a T }"),
    (
        "src/shown.rs",
        r#"
        use std::fmt::{self, Display};

        #[derive(Clone, Copy, PartialEq, Eq)]
        pub struct Shape { pub width: u32, height: u32, pub(crate) private_depth: u32 }
        pub struct Tuple<T>(pub T, u8);
        pub struct Unit;
        struct Private;
        #[repr(u8)] pub enum Extra { One = 0x01, Two(u8, String) }
        impl Extra { pub fn extra(&self) {} }

        impl Shape {
            pub const EDGES: u8 = 4;
            pub fn area(&self) -> u64 { 0 }
            #[must_use] pub fn scaled(mut self, by: u32) -> Self { self }
            fn private_method(&self) {}
            #[doc(hidden)] pub fn private_by_documentation(&self) {}
            #[cfg(feature = "extra")] pub fn extra_edges(&mut self, mut edges: u8) {}
        }
        impl<T: Ord> Tuple<T> { pub fn into_inner(self) -> T { self.0 } }
        impl Private { pub fn private_all_the_same(&self) {} }

        pub trait Sealed: Display + Send {
            type Item: Clone;
            const SIZE: usize;
            fn required(&self, item: Self::Item) -> u8;
            fn provided(&self) -> u8 { 0 }
            #[doc(hidden)] fn private_by_documentation(&self) {}
        }
        trait PrivateTrait {}
        impl PrivateTrait for Shape {}
        impl Sealed for Private {}
        impl From<Private> for Unit {}

        impl Display for Shape {}
        impl fmt::Debug for Shape {}
        impl Sealed for Shape { type Item = u8; const SIZE: usize = 12; }
        impl From<Shape> for Vec<u8> {}
        impl<'a, T> IntoIterator for &'a Tuple<T> { type Item = &'a T; type IntoIter = std::slice::Iter<'a, T>; }
        impl<T: Copy> Sealed for [T] {}
        #[cfg(feature = "extra")] impl Default for Shape {}
        #[cfg(test)] impl Drop for Shape {}
        "#,
    ),
];

#[test]
fn every_kind_of_item_is_listed_and_nothing_private() {
    let read = |path: &Path| {
        FILES.iter().find(|(name, _)| path == Path::new(name)).map(|(_, text)| (*text).to_owned())
    };
    let listed = lines(&Sources::load("made_up", Path::new("src"), &read).unwrap());
    assert!(!listed.to_lowercase().replace("[private fields]", "").contains("private"), "{listed}");
    insta::assert_snapshot!(listed, @r#"
    made_up::*: pub use other_crate::whole::*
    made_up::Duration: pub use std::time::Duration
    made_up::Extra: enum [repr(u8)] [cfg(feature = "extra")]
    made_up::Extra::One: variant = 0x01 [cfg(feature = "extra")]
    made_up::Extra::Two: variant(u8, String) [cfg(feature = "extra")]
    made_up::Extra::extra(&self) [cfg(feature = "extra")]
    made_up::Failure: enum [derives Debug, thiserror::Error] [non_exhaustive]
    impl From<std::io::Error> for made_up::Failure
    made_up::Failure::Io: variant(std::io::Error)
    made_up::Failure::Named: variant { path: String, source: Box<Failure> } [non_exhaustive]
    made_up::LIMIT: const usize = 4 * 1024
    made_up::NAME: static &str
    made_up::OtherThing: pub use other_crate::nested::Thing
    made_up::Renamed: struct<'a, T = u8> where T: Copy
    made_up::Renamed::field: &'a T
    made_up::Result: type<T, E = Failure> = std::result::Result<T, E>
    made_up::Sealed: trait: Display + Send
    impl<T: Copy> made_up::Sealed for [T]
    made_up::Sealed::Item: type: Clone [required]
    made_up::Sealed::SIZE: const usize [required]
    made_up::Sealed::provided(&self) -> u8 [provided]
    made_up::Sealed::required(&self, item: Self::Item) -> u8 [required]
    made_up::Shape: struct [private fields] [derives Clone, Copy, Eq, PartialEq]
    impl Default for made_up::Shape [cfg(feature = "extra")]
    impl From<Shape> for Vec<u8>
    impl made_up::Sealed for made_up::Shape [type Item = u8] [const SIZE = 12]
    impl std::fmt::Debug for made_up::Shape
    impl std::fmt::Display for made_up::Shape
    made_up::Shape::EDGES: const u8 = 4
    made_up::Shape::area(&self) -> u64
    made_up::Shape::extra_edges(&mut self, edges: u8) [cfg(feature = "extra")]
    made_up::Shape::from_another_file(self: Box<Self>)
    made_up::Shape::scaled(self, by: u32) -> Self [must_use]
    made_up::Shape::width: u32
    made_up::Tuple: tuple struct<T> [private fields]
    impl<'a, T> IntoIterator for &'a made_up::Tuple<T> [type Item = &'a T] [type IntoIter = std::slice::Iter<'a, T>]
    made_up::Tuple::0: T
    made_up::Tuple::into_inner(self) -> T [impl<T: Ord> Tuple<T>]
    made_up::Unit: unit struct
    made_up::always()
    made_up::by_glob()
    made_up::deeper: mod
    made_up::deeper::Bottom: pub use made_up::Renamed
    made_up::foreign(byte: u8) -> u8 [extern "C"] [deprecated]
    made_up::later() [async]
    made_up::long<'a, T: Clone + Default>(first_argument: &'a [T], second_argument: impl Fn(u8) -> T + 'a, (third, _): (u64, u64)) -> Option<(u64, &'a T)> where T: Send [const unsafe] [must_use]
    made_up::open: mod
    made_up::open::inside: pub use made_up::second_name
    made_up::renamed_module: mod
    made_up::renamed_module::Bottom: pub use made_up::Renamed
    made_up::second_name()
    made_up::shout!: macro
    made_up::without_extra() [cfg(not(feature = "extra"))]
    "#);
}

#[test]
fn what_cannot_be_followed_is_an_error() {
    let load = |text: &'static str| {
        let read = move |path: &Path| (path == Path::new("src/lib.rs")).then(|| text.to_owned());
        Sources::load("made_up", Path::new("src"), &read).map(|sources| lines(&sources))
    };
    assert_eq!(load("mod gone;"), Err("cannot read src/gone/mod.rs".to_owned()));
    assert!(load("fn (").unwrap_err().starts_with("cannot parse src/lib.rs: "));
    assert!(load("#[path = \"a.rs\"] mod b;").unwrap_err().starts_with("module b has a path of its own"));
    assert_eq!(
        load("#[cfg(unix)] mod a {} #[cfg(windows)] mod a {}"),
        Err("module a is declared twice".to_owned())
    );
    // Imports in a circle end.
    assert_eq!(load("pub mod a { pub use super::*; } pub use a::*;"), Ok("made_up::a: mod\n".to_owned()));
}
