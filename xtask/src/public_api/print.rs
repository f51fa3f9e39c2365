//! Pieces of Rust on one line, the same whatever lines the source broke them into.

use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, File, FnArg, Generics, Item, ItemImpl, ItemTrait, Pat, Signature, Token, Type};
use syn::{TypeParamBound, parse_quote};

/// A type.
pub(super) fn ty(ty: &Type) -> String {
    between("type X = ", parse_quote!(type X = #ty;), ";")
}

/// A value.
pub(super) fn expr(expr: &Expr) -> String {
    between("const X: X = ", parse_quote!(const X: X = #expr;), ";")
}

/// An attribute without `#[` and `]`.
pub(super) fn attribute(attribute: &Attribute) -> String {
    between("#[", parse_quote!(#attribute struct X;), "] struct X;")
}

/// The parameters of a type with their defaults, and what it asks of them.
pub(super) fn generics(generics: &Generics) -> String {
    let condition = &generics.where_clause;
    between("struct X", parse_quote!(struct X #generics #condition {}), "{}")
}

/// Bounds with their colon, or nothing.
pub(super) fn bounds(bounds: &Punctuated<TypeParamBound, Token![+]>) -> String {
    if bounds.is_empty() {
        return String::new();
    }
    between("trait X", parse_quote!(trait X: #bounds {}), "{}")
}

/// What follows the name of a trait: its parameters, its supertraits, its conditions.
pub(super) fn trait_header(item: &ItemTrait) -> String {
    let ItemTrait { generics, supertraits, .. } = item;
    let condition = &generics.where_clause;
    between("trait X", parse_quote!(trait X #generics: #supertraits #condition {}), "{}")
}

/// The first line of an `impl`, up to its brace.
pub(super) fn impl_header(item: &ItemImpl) -> String {
    let header = ItemImpl { attrs: Vec::new(), items: Vec::new(), ..item.clone() };
    between("", Item::Impl(header), "{}")
}

/// What follows the name of a function, and what precedes `fn`, if anything does.
pub(super) fn signature(signature: &Signature) -> (String, Option<String>) {
    let mut signature = signature.clone();
    signature.inputs.iter_mut().for_each(immutable);
    let whole = between("trait X {", parse_quote!(trait X { #signature; }), "; }");
    let opening = format!("fn {}", signature.ident);
    let (before, after) = whole.split_once(&opening).unwrap_or(("", &whole));
    let before = before.trim();
    (after.to_owned(), (!before.is_empty()).then(|| before.to_owned()))
}

/// That a function changes its own copy of an argument is nothing to its caller.
fn immutable(argument: &mut FnArg) {
    match argument {
        FnArg::Receiver(receiver) => receiver.mutability = None,
        FnArg::Typed(typed) => {
            if let Pat::Ident(name) = &mut *typed.pat {
                name.mutability = None;
            }
        }
    }
}

/// Prints an item and takes away what was put around the piece.
fn between(before: &str, item: Item, after: &str) -> String {
    let file = File { shebang: None, frontmatter: None, attrs: Vec::new(), items: vec![item] };
    let text = one_line(&prettyplease::unparse(&file));
    let text = text.strip_prefix(before).unwrap_or(&text);
    let text = text.strip_suffix(after).unwrap_or(text);
    text.trim_end_matches([' ', ',']).trim_start().to_owned()
}

/// Joins lines, without the spaces and commas that only their breaks called for.
fn one_line(text: &str) -> String {
    let mut joined = String::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with([')', ']', '>']) {
            let kept = joined.trim_end_matches([' ', ',']).len();
            joined.truncate(kept);
        } else if !joined.is_empty() && !joined.ends_with(['(', '[', '<']) && !line.starts_with(['.', '?']) {
            joined.push(' ');
        }
        joined.push_str(line);
    }
    joined
}
