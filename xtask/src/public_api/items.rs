//! The lines of an item and of its members.

use syn::{Fields, Item, ItemEnum, ItemTrait, Signature, TraitItem, Visibility};

use super::exports::{Export, Exports};
use super::listing::Listing;
use super::sources::{self, Sources};
use super::{attributes, print};

/// Lists every exported item with its fields, variants or methods.
pub(super) fn write(sources: &Sources, exports: &Exports<'_>, listing: &mut Listing) {
    for export in exports.iter() {
        let Export { declared, path, marks, .. } = export;
        match declared.item {
            Item::Const(item) => {
                listing.item(
                    path,
                    &format!(": const {} = {}", print::ty(&item.ty), print::expr(&item.expr)),
                    marks,
                );
            }
            Item::Static(item) => {
                let mutable =
                    if matches!(item.mutability, syn::StaticMutability::Mut(_)) { "mut " } else { "" };
                listing.item(path, &format!(": static {mutable}{}", print::ty(&item.ty)), marks);
            }
            Item::Fn(item) => function(path, &item.sig, marks, listing),
            Item::Type(item) => {
                let text = format!(": type{} = {}", print::generics(&item.generics), print::ty(&item.ty));
                listing.item(path, &text, marks);
            }
            Item::Struct(item) => {
                let text = format!("{}{}", shape(&item.fields), print::generics(&item.generics));
                structure(sources, export, &text, &item.fields, listing);
            }
            Item::Union(item) => {
                let text = format!("union{}", print::generics(&item.generics));
                structure(sources, export, &text, &Fields::Named(item.fields.clone()), listing);
            }
            Item::Enum(item) => enumeration(sources, export, item, listing),
            Item::Trait(item) => interface(export, item, listing),
            Item::Macro(_) => listing.item(path, "!: macro", marks),
            _ => {}
        }
    }
}

/// Lists a function, and in brackets what stands before its `fn`.
pub(super) fn function(path: &str, signature: &Signature, marks: &[String], listing: &mut Listing) {
    let (text, before) = print::signature(signature);
    let all: Vec<String> = before.into_iter().chain(marks.iter().cloned()).collect();
    listing.item(path, &text, &all);
}

/// How a value is built and taken apart; that is nobody's business where every field is private.
fn shape(fields: &Fields) -> &'static str {
    match fields {
        Fields::Unit => "unit struct",
        Fields::Unnamed(_) if fields.iter().any(|field| matches!(field.vis, Visibility::Public(_))) => {
            "tuple struct"
        }
        _ => "struct",
    }
}

fn structure(sources: &Sources, export: &Export<'_>, text: &str, fields: &Fields, listing: &mut Listing) {
    let mut has_private = false;
    for (position, field) in fields.iter().enumerate() {
        let marks = attributes::marks(&field.attrs).filter(|_| matches!(field.vis, Visibility::Public(_)));
        let Some(mut marks) = marks else {
            has_private = true;
            continue;
        };
        marks.extend(conditions(export));
        let name = field.ident.as_ref().map_or_else(|| position.to_string(), ToString::to_string);
        listing.item(&format!("{}::{name}", export.path), &format!(": {}", print::ty(&field.ty)), &marks);
    }
    let mut marks = with_derives(sources, export);
    if has_private {
        marks.insert(0, "private fields".to_owned());
    }
    listing.item(&export.path, &format!(": {text}"), &marks);
}

fn enumeration(sources: &Sources, export: &Export<'_>, item: &ItemEnum, listing: &mut Listing) {
    listing.item(
        &export.path,
        &format!(": enum{}", print::generics(&item.generics)),
        &with_derives(sources, export),
    );
    for variant in &item.variants {
        let Some(mut marks) = attributes::marks(&variant.attrs) else { continue };
        marks.extend(conditions(export));
        let fields: Vec<String> = variant
            .fields
            .iter()
            .map(|field| match &field.ident {
                Some(name) => format!("{name}: {}", print::ty(&field.ty)),
                None => print::ty(&field.ty),
            })
            .collect();
        let mut text = match &variant.fields {
            Fields::Named(_) => format!(": variant {{ {} }}", fields.join(", ")),
            Fields::Unnamed(_) => format!(": variant({})", fields.join(", ")),
            Fields::Unit => ": variant".to_owned(),
        };
        if let Some((_, value)) = &variant.discriminant {
            text.push_str(" = ");
            text.push_str(&print::expr(value));
        }
        listing.item(&format!("{}::{}", export.path, variant.ident), &text, &marks);
    }
}

fn interface(export: &Export<'_>, item: &ItemTrait, listing: &mut Listing) {
    let keyword = if item.unsafety.is_some() { "unsafe trait" } else { "trait" };
    listing.item(&export.path, &format!(": {keyword}{}", print::trait_header(item)), &export.marks);
    for member in &item.items {
        let (name, attributes, is_provided) = match member {
            TraitItem::Const(member) => (&member.ident, &member.attrs, member.default.is_some()),
            TraitItem::Fn(member) => (&member.sig.ident, &member.attrs, member.default.is_some()),
            TraitItem::Type(member) => (&member.ident, &member.attrs, member.default.is_some()),
            _ => continue,
        };
        let Some(mut marks) = attributes::marks(attributes) else { continue };
        // What every implementation must write, or need not.
        marks.insert(0, if is_provided { "provided" } else { "required" }.to_owned());
        marks.extend(conditions(export));
        let path = format!("{}::{name}", export.path);
        match member {
            TraitItem::Const(member) => {
                listing.item(&path, &format!(": const {}", print::ty(&member.ty)), &marks);
            }
            TraitItem::Fn(member) => function(&path, &member.sig, &marks, listing),
            TraitItem::Type(member) => {
                let text =
                    format!(": type{}{}", print::generics(&member.generics), print::bounds(&member.bounds));
                listing.item(&path, &text, &marks);
            }
            _ => {}
        }
    }
}

/// The conditions of an item, which hold for its members as well.
pub(super) fn conditions(export: &Export<'_>) -> impl Iterator<Item = String> {
    export.marks.iter().filter(|mark| mark.starts_with("cfg(")).cloned()
}

fn with_derives(sources: &Sources, export: &Export<'_>) -> Vec<String> {
    let mut marks = export.marks.clone();
    let derived = attributes::derived(sources::attributes_of(export.declared.item));
    if !derived.is_empty() {
        let mut names: Vec<String> =
            derived.iter().map(|path| sources.full_name(export.declared.module, path)).collect();
        names.sort();
        marks.insert(0, format!("derives {}", names.join(", ")));
    }
    marks
}
