//! Initialisers: bytes, addresses, and the fields of opaque variables. PTX ISA §5.3, §5.4.4.
//!
//! Invariant: the bytes of an [`Init`] are never longer than the variable, and relocations lie inside the
//! variable. The memory for a module's initialisers is bounded by the length of the text.

use super::checker::Checker;
use super::constant::Const;
use super::constexpr::{self, SymbolSum, Value};
use super::immediate;
use super::meant::Wanted;
use super::module::{AddressSize, FunctionKind, Init, Reloc, Symbol};
use super::scope::{Entity, Found};
use super::shape::Shape;
use crate::Span;
use crate::diag::{Code, Diagnostic};
use crate::isa::{Space, Ty, TyKind, Version};
use crate::syntax::tree::{Expr, ExprKind, Initializer, Name};

/// The result of an initialiser.
#[derive(Clone, Debug, Default)]
pub(super) struct Initial {
    /// Contents.
    pub(super) init: Option<Init>,
    /// Fields of an opaque variable.
    pub(super) fields: Vec<(String, u64)>,
}

/// Bytes that the gaps between values of all initialisers may take, beyond a multiple of the text. Chosen.
const SPARE_BYTES: usize = 64 << 20;

/// Evaluates an initialiser, and sets the size of an unsized first dimension. `None` after an error.
pub(super) fn evaluate(
    checker: &mut Checker<'_>,
    shape: &mut Shape,
    initializer: &Initializer,
) -> Option<Initial> {
    if shape.ty.kind() == TyKind::Opaque {
        return fields(checker, shape.ty, initializer);
    }
    let errors = checker.report.errors();
    if shape.dims.first() == Some(&0) {
        let Initializer::List { items, .. } = initializer else {
            wrong_nesting(checker, initializer.span(), "an array needs a list in braces");
            return None;
        };
        let count = items.len() as u64;
        if count == 0 {
            wrong_nesting(checker, initializer.span(), "an array without a size needs at least one element");
            return None;
        }
        shape.dims[0] = count;
        let element = u64::from(shape.ty.bytes()) * u64::from(shape.vector);
        shape.bytes = shape.dims.iter().fold(element, |n, d| n.saturating_mul(*d));
    }
    let mut extents = shape.dims.clone();
    if shape.vector > 1 {
        extents.push(u64::from(shape.vector));
    }
    let most = SPARE_BYTES.saturating_add(checker.text.len().saturating_mul(16));
    let limit = most.saturating_sub(checker.initial_bytes);
    let mut filler = Filler { checker, ty: shape.ty, init: Init::default(), parts: Vec::new(), limit };
    filler.fill(&extents, 0, initializer);
    let (mut init, parts) = (filler.init, filler.parts);
    checker.initial_bytes = checker.initial_bytes.saturating_add(init.bytes.len());
    merge_parts(checker, parts, &mut init);
    (checker.report.errors() == errors).then_some(Initial { init: Some(init), fields: Vec::new() })
}

/// One byte of an address: `0xFF00(x)`.
struct Part {
    offset: u64,
    byte: u8,
    symbol: Symbol,
    addend: i64,
    generic: bool,
    span: Span,
}

struct Filler<'c, 'a> {
    checker: &'c mut Checker<'a>,
    ty: Ty,
    init: Init,
    parts: Vec<Part>,
    limit: usize,
}

impl Filler<'_, '_> {
    /// Fills `extents` at byte `offset` from an initialiser.
    fn fill(&mut self, extents: &[u64], offset: u64, initializer: &Initializer) {
        let Some((first, inner)) = extents.split_first() else {
            return self.element(offset, initializer);
        };
        let Initializer::List { items, span } = initializer else {
            wrong_nesting(self.checker, initializer.span(), "expected a list in braces");
            return;
        };
        if items.len() as u64 > *first {
            let extra = items.get(*first as usize).map_or(*span, Initializer::span);
            self.checker.report.push(
                Diagnostic::new(
                    Code::BadInitializer,
                    extra,
                    format!("{} elements for a dimension of {first}", items.len()),
                )
                .with_label("too many from here on")
                .with_section("5.4.4"),
            );
            return;
        }
        let size = inner.iter().fold(u64::from(self.ty.bytes()), |n, d| n.saturating_mul(*d));
        for (index, item) in items.iter().enumerate() {
            // Saturated in variables that are too large, which is an error of its own.
            self.fill(inner, offset.saturating_add(size.saturating_mul(index as u64)), item);
        }
    }

    fn element(&mut self, offset: u64, initializer: &Initializer) {
        let expr = match initializer {
            Initializer::Value(expr) => expr,
            Initializer::List { span, .. } => {
                return wrong_nesting(self.checker, *span, "braces nest deeper than the dimensions");
            }
            Initializer::Field { name, .. } => {
                return wrong_nesting(
                    self.checker,
                    name.span,
                    "fields are for `.texref`, `.samplerref` and `.surfref`",
                );
            }
        };
        match constexpr::evaluate(expr, self.checker.text, &mut self.checker.report) {
            None => {}
            Some(Value::Const(value)) => self.constant(offset, value, expr),
            Some(Value::Symbol(symbol)) => self.address(offset, &symbol, expr),
        }
    }

    fn constant(&mut self, offset: u64, value: Const, expr: &Expr) {
        let Some(bits) = immediate::initial(self.checker, self.ty, value, expr.span) else { return };
        let size = self.ty.bytes() as usize;
        let Ok(start) = usize::try_from(offset) else { return };
        let end = start.saturating_add(size);
        if end > self.limit {
            self.too_large(expr.span);
            return;
        }
        if self.init.bytes.len() < end {
            self.init.bytes.resize(end, 0);
        }
        for (target, byte) in self.init.bytes[start..end].iter_mut().zip(bits.to_le_bytes()) {
            *target = byte;
        }
    }

    fn too_large(&mut self, span: Span) {
        self.checker.report.push(
            Diagnostic::new(Code::TooLarge, span, "the initialised part of this variable is too large")
                .with_section("5.4.4"),
        );
    }

    fn address(&mut self, offset: u64, sum: &SymbolSum, expr: &Expr) {
        let Some((symbol, space)) = self.symbol(sum) else { return };
        if matches!(symbol, Symbol::Func(_)) && (sum.generic.is_some() || sum.addend != 0) {
            let what = if sum.generic.is_some() { "is in no state space" } else { "takes no offset" };
            self.checker.report.push(
                Diagnostic::new(Code::BadInitializer, expr.span, format!("the address of a function {what}"))
                    .with_help(format!("`{}` alone", sum.name.name.text(self.checker.text)))
                    .with_section("5.4.4"),
            );
            return;
        }
        if let Some(span) = sum.generic {
            self.checker.needs(span, "`generic()`", Version::new(3, 1), 20, "5.4.4");
        }
        let legacy = !self.checker.at_least(Version::new(3, 1)) && space == Some(Space::Global);
        let generic = sum.generic.is_some() || legacy;
        if let Some(mask) = sum.mask {
            return self.masked(offset, mask, symbol, sum, generic, expr.span);
        }
        let size = match self.checker.header.address_size() {
            AddressSize::Bits32 => 32,
            AddressSize::Bits64 => 64,
        };
        match self.ty.kind() {
            TyKind::Unsigned | TyKind::Signed | TyKind::Bits if self.ty.bits() == size => {
                if self.ty.kind() != TyKind::Unsigned {
                    self.checker.report.push(
                        Diagnostic::new(
                            Code::NotPortable,
                            expr.span,
                            format!("an address in a variable of type `.{}`", self.ty.name()),
                        )
                        .with_help(format!("ptxas expects `.u{size}`"))
                        .with_section("5.4.4"),
                    );
                }
            }
            TyKind::Unsigned if self.ty.bits() == 32 => self.checker.report.push(
                Diagnostic::new(Code::NonStandard, expr.span, "a 64-bit address in a variable of 32 bits")
                    .with_label("the upper half is cut off")
                    .with_help("`.u64`")
                    .with_section("5.4.4"),
            ),
            TyKind::Bits
            | TyKind::Unsigned
            | TyKind::Signed
            | TyKind::Float
            | TyKind::Pred
            | TyKind::Opaque => {
                self.checker.report.push(
                    Diagnostic::new(
                        Code::BadInitializer,
                        expr.span,
                        format!("an address cannot initialise a variable of type `.{}`", self.ty.name()),
                    )
                    .with_help(format!("`.u{size}`"))
                    .with_section("5.4.4"),
                );
                return;
            }
        }
        let bytes = self.ty.bytes() as u8;
        self.init.relocs.push(Reloc { offset, bytes, symbol, addend: sum.addend, generic });
    }

    fn masked(&mut self, offset: u64, mask: u64, symbol: Symbol, sum: &SymbolSum, generic: bool, span: Span) {
        self.checker.needs(span, "`mask(address)`", Version::new(7, 1), 10, "5.4.4");
        let byte = (0..8u8).find(|k| mask == 0xFF << (8 * k));
        let (Some(byte), 8) = (byte, self.ty.bits()) else {
            self.checker.report.push(
                Diagnostic::new(
                    Code::BadInitializer,
                    span,
                    "a mask takes one byte of an address, for a variable of bytes",
                )
                .with_help("`0xFF(x)`, `0xFF00(x)`, ...")
                .with_section("5.4.4"),
            );
            return;
        };
        self.parts.push(Part { offset, byte, symbol, addend: sum.addend, generic, span });
    }

    /// The symbol of a name in an initialiser, and the state space of a variable.
    fn symbol(&mut self, sum: &SymbolSum) -> Option<(Symbol, Option<Space>)> {
        let text = self.checker.text;
        let name = sum.name.name.text(text);
        let span = sum.name.name.span;
        let error = match self.checker.scopes.find(name) {
            None => {
                self.checker.undeclared(sum.name.name, Wanted::Address, &[]);
                return None;
            }
            Some(Found::Entity(Entity::Broken, _)) => return None,
            Some(Found::Entity(Entity::Var(id), _)) => {
                let variable = &self.checker.variables[id.0 as usize];
                match variable.space {
                    Space::Global | Space::Const if variable.ty.kind() != TyKind::Opaque => {
                        let space = variable.space;
                        self.checker.needs(
                            span,
                            "the address of a variable in an initialiser",
                            Version::new(2, 1),
                            10,
                            "5.4.4",
                        );
                        return Some((Symbol::Var(id), Some(space)));
                    }
                    Space::Global | Space::Const | Space::Tex => {
                        format!("`{name}` is opaque, so its address cannot be used in an initialiser")
                    }
                    Space::Shared
                    | Space::Local
                    | Space::Param
                    | Space::Reg
                    | Space::Sreg
                    | Space::Generic => format!(
                        "`{name}` is in `.{}`; only addresses of `.global` and `.const` variables can be used in an initialiser",
                        variable.space.name()
                    ),
                }
            }
            Some(Found::Entity(Entity::Func(id), _)) => {
                match self.checker.functions[id.0 as usize].kind {
                    FunctionKind::Func => {
                        self.checker.needs(span, "the address of a function", Version::new(2, 1), 20, "5.4.4")
                    }
                    FunctionKind::Entry => {
                        self.checker.needs(span, "the address of a kernel", Version::new(3, 1), 35, "5.4.4")
                    }
                };
                return Some((Symbol::Func(id), None));
            }
            Some(Found::Entity(entity, _)) => {
                format!("`{name}` is {}, which has no address that can be used here", entity.noun())
            }
            Some(Found::Member(..)) => format!("`{name}` is a register, which has no address"),
        };
        self.checker.report.push(Diagnostic::new(Code::BadInitializer, span, error).with_section("5.4.4"));
        None
    }
}

fn wrong_nesting(checker: &mut Checker<'_>, span: Span, label: &str) {
    checker.report.push(
        Diagnostic::new(
            Code::BadInitializer,
            span,
            "the initialiser does not have the shape of the variable",
        )
        .with_label(label)
        .with_section("5.4.4"),
    );
}

/// Merges adjacent bytes of one address.
fn merge_parts(checker: &mut Checker<'_>, parts: Vec<Part>, init: &mut Init) {
    for part in parts {
        let continues = init.relocs.last_mut().filter(|last| {
            last.symbol == part.symbol
                && last.addend == part.addend
                && last.generic == part.generic
                && last.bytes < 8
                && last.offset + u64::from(last.bytes) == part.offset
                && last.bytes == part.byte
        });
        if let Some(last) = continues {
            last.bytes += 1;
        } else if part.byte == 0 {
            init.relocs.push(Reloc {
                offset: part.offset,
                bytes: 1,
                symbol: part.symbol,
                addend: part.addend,
                generic: part.generic,
            });
        } else {
            checker.report.push(
                Diagnostic::new(
                    Code::NotImplemented,
                    part.span,
                    "the upper bytes of an address without its lower bytes",
                )
                .with_label("the lower bytes must come first")
                .with_section("5.4.4"),
            );
        }
    }
}

/// A field of an opaque type.
struct Field {
    name: &'static str,
    tex_unified: bool,
    tex_independent: bool,
    sampler: bool,
    surf: bool,
    since: Version,
}

const fn field(name: &'static str, for_: &str, major: u8, minor: u8) -> Field {
    let letters = for_.as_bytes();
    let mut f = Field {
        name,
        tex_unified: false,
        tex_independent: false,
        sampler: false,
        surf: false,
        since: Version::new(major, minor),
    };
    let mut i = 0;
    while i < letters.len() {
        match letters[i] {
            b'u' => f.tex_unified = true,
            b'i' => f.tex_independent = true,
            b'a' => f.sampler = true,
            b's' => f.surf = true,
            _ => {}
        }
        i += 1;
    }
    f
}

/// Tables 9 and 10: `u` texref in unified mode, `i` texref in independent mode, `a` samplerref, `s` surfref.
const FIELDS: &[Field] = &[
    field("width", "uis", 1, 5),
    field("height", "uis", 1, 5),
    field("depth", "uis", 1, 5),
    field("channel_data_type", "uis", 2, 1),
    field("channel_order", "uis", 2, 1),
    field("normalized_coords", "ui", 1, 5),
    field("force_unnormalized_coords", "a", 2, 2),
    field("filter_mode", "uia", 1, 5),
    field("addr_mode_0", "ua", 1, 5),
    field("addr_mode_1", "ua", 1, 5),
    field("addr_mode_2", "ua", 1, 5),
    field("array_size", "uis", 4, 1),
    field("num_mipmap_levels", "ui", 4, 1),
    field("num_samples", "ui", 4, 1),
    field("memory_layout", "s", 4, 2),
];

/// Words for `filter_mode` and `addr_mode_i`; their numbers are their indices (the manual gives none).
const FILTER_MODES: [&str; 2] = ["nearest", "linear"];
const ADDR_MODES: [&str; 5] = ["wrap", "mirror", "clamp_ogl", "clamp_to_edge", "clamp_to_border"];

fn fields(checker: &mut Checker<'_>, ty: Ty, initializer: &Initializer) -> Option<Initial> {
    let Initializer::List { items, .. } = initializer else {
        wrong_nesting(checker, initializer.span(), "an opaque variable takes `{ field = value, ... }`");
        return None;
    };
    let errors = checker.report.errors();
    let mut fields: Vec<(String, u64)> = Vec::new();
    for item in items {
        let Initializer::Field { name, value } = item else {
            wrong_nesting(checker, item.span(), "an opaque variable takes `field = value`");
            continue;
        };
        let Some(value) = field_value(checker, ty, *name, value) else { continue };
        let text = name.text(checker.text);
        if fields.iter().any(|(n, _)| n == text) {
            checker.report.push(
                Diagnostic::new(
                    Code::BadInitializer,
                    name.span,
                    format!("the field `{text}` is given twice"),
                )
                .with_section("5.3"),
            );
            continue;
        }
        fields.push((text.to_owned(), value));
    }
    (checker.report.errors() == errors).then_some(Initial { init: None, fields })
}

fn field_value(checker: &mut Checker<'_>, ty: Ty, name: Name, value: &Expr) -> Option<u64> {
    let text = name.text(checker.text);
    let independent = checker.header.texmode_independent();
    let fits = |f: &Field| {
        if ty == Ty::Surfref {
            f.surf
        } else if ty == Ty::Samplerref {
            f.sampler && (independent || f.name != "force_unnormalized_coords")
        } else if independent {
            f.tex_independent
        } else {
            f.tex_unified
        }
    };
    let Some(field) = FIELDS.iter().find(|f| f.name == text && fits(f)) else {
        let mut diagnostic = Diagnostic::new(
            Code::BadInitializer,
            name.span,
            format!("`.{}` has no field `{text}`", ty.name()),
        )
        .with_section("5.3");
        let names = FIELDS.iter().filter(|f| fits(f)).map(|f| f.name);
        if let Some(near) = crate::spelling::closest(text, names.clone()) {
            diagnostic = diagnostic.with_help(format!("did you mean `{near}`?"));
        } else {
            diagnostic =
                diagnostic.with_help(format!("its fields: {}", names.collect::<Vec<_>>().join(", ")));
        }
        checker.report.push(diagnostic);
        return None;
    };
    checker.needs(name.span, &format!("the field `{text}`"), field.since, 10, "5.3");
    let words: &[&str] = match field.name {
        "filter_mode" => &FILTER_MODES,
        "addr_mode_0" | "addr_mode_1" | "addr_mode_2" => &ADDR_MODES,
        _ => &[],
    };
    if let ExprKind::Name(word) = &value.kind {
        let word = word.span.text(checker.text);
        if let Some(number) = words.iter().position(|w| *w == word) {
            return Some(number as u64);
        }
        let help = if words.is_empty() { "a number".to_owned() } else { words.join(", ") };
        checker.report.push(
            Diagnostic::new(Code::BadInitializer, value.span, format!("`{text}` cannot be `{word}`"))
                .with_help(help)
                .with_section("5.3"),
        );
        return None;
    }
    let number = constexpr::integer(value, "a field", checker.text, &mut checker.report)?;
    let boolean = matches!(field.name, "normalized_coords" | "force_unnormalized_coords" | "memory_layout");
    let most = if boolean {
        1
    } else if words.is_empty() {
        i128::from(u32::MAX)
    } else {
        words.len() as i128 - 1
    };
    match number.wide().filter(|v| (0..=most).contains(v)) {
        Some(v) => u64::try_from(v).ok(),
        None => {
            checker.report.push(
                Diagnostic::new(Code::BadInitializer, value.span, format!("`{text}` cannot be {number}"))
                    .with_help(format!("0 to {most}"))
                    .with_section("5.3"),
            );
            None
        }
    }
}
