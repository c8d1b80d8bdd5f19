//! Initial contents as text: elements in braces, addresses, fields of opaque variables. PTX ISA §5.3, §5.4.4.
//!
//! Invariant: the printed initialiser gives the same bytes and addresses, and not more of them: elements
//! after the last given one are omitted.

use super::{Printer, literal};
use crate::check::module::{Init, Reloc, Symbol, Variable};
use crate::isa::{Ty, Version};
use std::fmt::Write as _;

impl Printer<'_> {
    /// ` = …`, if there is an initialiser.
    pub(super) fn initializer(&mut self, variable: &Variable) {
        if !variable.fields.is_empty() {
            let fields: Vec<String> =
                variable.fields.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            let _ = write!(self.out, " = {{{}}}", fields.join(", "));
        }
        let Some(init) = &variable.init else { return };
        let mut extents = variable.dims.clone();
        if variable.vector > 1 {
            extents.push(u64::from(variable.vector));
        }
        self.out.push_str(" = ");
        let mut contents = Contents { init, ty: variable.ty, next: 0 };
        self.part(&mut contents, &extents, 0);
    }

    /// The part of a variable at `offset`.
    fn part(&mut self, contents: &mut Contents<'_>, extents: &[u64], offset: u64) {
        let Some((count, inner)) = extents.split_first() else {
            return self.element(contents, offset);
        };
        let size = inner.iter().fold(u64::from(contents.ty.bytes()), |n, d| n.saturating_mul(*d));
        self.out.push('{');
        for index in 0..*count {
            let start = offset.saturating_add(index.saturating_mul(size));
            if !contents.reaches(start, count.saturating_sub(index).saturating_mul(size)) {
                break;
            }
            if index > 0 {
                self.out.push_str(", ");
            }
            self.part(contents, inner, start);
        }
        self.out.push('}');
    }

    fn element(&mut self, contents: &mut Contents<'_>, offset: u64) {
        let size = u64::from(contents.ty.bytes());
        let Some(reloc) = contents.reloc_at(offset) else {
            let bytes = &contents.init.bytes;
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let bits = (0..size as usize).rev().fold(0u64, |bits, i| {
                bits << 8 | u64::from(bytes.get(start.saturating_add(i)).copied().unwrap_or(0))
            });
            self.out.push_str(&literal(contents.ty, bits));
            return;
        };
        if size > 1 {
            self.address(reloc);
            return;
        }
        // An address byte by byte.
        let _ = write!(self.out, "{:#x}(", 0xFFu64 << (8 * (offset - reloc.offset)));
        self.address(reloc);
        self.out.push(')');
    }

    fn address(&mut self, reloc: &Reloc) {
        let name = match reloc.symbol {
            Symbol::Var(id) => self.module.variables.get(id.0 as usize).map(|v| v.name.as_str()),
            Symbol::Func(id) => self.module.functions.get(id.0 as usize).map(|f| f.name.as_str()),
        };
        let name = name.unwrap_or("_");
        // Before PTX 3.1 addresses of global variables are generic, and `generic()` does not exist.
        if reloc.generic && self.module.version >= Version::new(3, 1) {
            let _ = write!(self.out, "generic({name})");
        } else {
            self.out.push_str(name);
        }
        if reloc.addend != 0 {
            let _ = write!(self.out, "{:+}", reloc.addend);
        }
    }
}

/// Initial contents, read from front to back.
struct Contents<'m> {
    init: &'m Init,
    ty: Ty,
    /// Addresses before this index are printed.
    next: usize,
}

impl<'m> Contents<'m> {
    /// Whether there are contents in `size` bytes from `offset` on.
    fn reaches(&self, offset: u64, size: u64) -> bool {
        let end = offset.saturating_add(size);
        let reloc = self.init.relocs.get(self.next);
        offset < self.init.bytes.len() as u64
            || reloc.is_some_and(|r| r.offset < end && offset < r.offset.saturating_add(u64::from(r.bytes)))
            || reloc.is_some_and(|r| (offset..end).contains(&r.offset))
    }

    /// The address that contains the element at `offset`.
    fn reloc_at(&mut self, offset: u64) -> Option<&'m Reloc> {
        let reloc = self.init.relocs.get(self.next)?;
        let end = reloc.offset.saturating_add(u64::from(reloc.bytes));
        if !(reloc.offset..end).contains(&offset) {
            return None;
        }
        if offset.saturating_add(u64::from(self.ty.bytes())) >= end {
            self.next += 1;
        }
        Some(reloc)
    }
}
