//! Parses the initial state: locations, their aliases, and registers.

use super::lex::Kind;
use super::{Declared, MOST_BYTES, MOST_LOCATIONS, Parser, type_named};
use crate::Error;
use crate::test::{Location, Operand, Proxy, Space, Type};

/// The type words of C that stand for one.
const C_TYPES: &[(&str, Type)] = &[
    ("int", Type { size: 4, signed: true, packed: false }),
    ("int8_t", Type { size: 1, signed: true, packed: false }),
    ("int16_t", Type { size: 2, signed: true, packed: false }),
    ("int32_t", Type { size: 4, signed: true, packed: false }),
    ("int64_t", Type { size: 8, signed: true, packed: false }),
    ("uint8_t", Type { size: 1, signed: false, packed: false }),
    ("uint16_t", Type { size: 2, signed: false, packed: false }),
    ("uint32_t", Type { size: 4, signed: false, packed: false }),
    ("uint64_t", Type { size: 8, signed: false, packed: false }),
];

/// What stands before the name of a location.
#[derive(Clone, Copy, Default)]
struct Qualifiers {
    ty: Option<Type>,
    space: Option<Space>,
}

impl<'t> Parser<'t> {
    /// `{ ... }`.
    pub(super) fn initial_state(&mut self) -> Result<(), Error> {
        self.want("{")?;
        while !self.take("}") {
            if self.take(";") {
                continue;
            }
            self.declaration()?;
            if !matches!(self.peek(), Kind::Mark("}" | ";")) {
                return Err(self.wrong("`;` is wanted"));
            }
        }
        self.take(";");
        for (place, location) in &self.aliased {
            if self.declared[*location].used {
                let name = &self.locations[*location].name;
                return Err(self.error_at(*place, format!("`{name}` is not declared")));
            }
        }
        Ok(())
    }

    fn declaration(&mut self) -> Result<(), Error> {
        let qualifiers = self.qualifiers()?;
        let place = self.at;
        if let Some(thread) = self.take_thread() {
            let register = self.want_word("a register")?;
            self.want("=")?;
            let value = self.initial_value()?.unwrap_or(Operand::Const(0));
            self.inits.push((thread, register, value, place));
            return Ok(());
        }
        let bracket = self.take("[");
        let name = self.want_word("a location or a register of a thread")?;
        if bracket {
            self.want("]")?;
        }
        let known = self.location_named(name);
        if known.is_some_and(|known| !self.declared[known].used) {
            return Err(self.error_at(place, format!("`{name}` is declared twice")));
        }
        let mut elements = 1;
        if self.take("[") {
            let most = u64::from(MOST_BYTES / 8);
            elements = match self.take_number() {
                Some(number) if (1..=most).contains(&number) => number as u32,
                _ => return Err(self.error_at(place, format!("`{name}` can have 1 to {most} elements"))),
            };
            self.want("]")?;
        }
        let location = match known {
            Some(location) => location,
            None => self.add_location(name, place)?,
        };
        self.declared[location].used = false;
        self.locations[location].elements = elements;
        if let Some(ty) = qualifiers.ty {
            self.locations[location].element = ty.size;
            self.locations[location].typed = true;
        }
        self.locations[location].typed |= elements > 1;
        if let Some(space) = qualifiers.space {
            self.locations[location].space = space;
            self.declared[location].space = true;
        }
        self.meaning(location, qualifiers)
    }

    /// What a location is: another name of one, or memory with a first value.
    fn meaning(&mut self, location: usize, qualifiers: Qualifiers) -> Result<(), Error> {
        if self.take("@") {
            let word = self.want_word("a proxy")?;
            let proxy = match word {
                "generic" => Proxy::Generic,
                "constant" => Proxy::Constant,
                "texture" => Proxy::Texture,
                "surface" => Proxy::Surface,
                _ => {
                    return Err(self.error_at(
                        self.at - 1,
                        format!("`{word}` is no proxy: `generic`, `constant`, `texture` and `surface` are"),
                    ));
                }
            };
            if self.take_word("aliases") || self.take("->") {
                return self.alias(location, proxy);
            }
        } else if self.take_word("aliases") || self.take("->") {
            return self.alias(location, Proxy::Generic);
        }
        let elements = self.locations[location].elements as usize;
        let init = if !self.take("=") {
            // Shared memory has no initial value; global memory without an initialiser is zero (PTX ISA
            // 5.4.4).
            let unknown = qualifiers.space == Some(Space::Shared);
            vec![if unknown { None } else { Some(Operand::Const(0)) }; elements]
        } else if self.take("{") {
            let mut list = Vec::new();
            while !self.take("}") {
                list.push(self.initial_value()?);
                self.take(",");
                if list.len() > elements {
                    return Err(self.wrong(&format!("at most {elements} values are wanted")));
                }
            }
            list.resize(elements, Some(Operand::Const(0)));
            list
        } else {
            vec![self.initial_value()?; elements]
        };
        self.locations[location].init = init;
        Ok(())
    }

    fn alias(&mut self, location: usize, proxy: Proxy) -> Result<(), Error> {
        self.take("&");
        let place = self.at;
        let name = self.want_word("a location")?;
        let target = self.location_or_used(name, place)?;
        let mut at = Some(target);
        while let Some(of) = at {
            if of == location {
                return Err(self.error_at(place, format!("`{name}` is an alias of this alias of it")));
            }
            at = self.locations[of].alias;
        }
        self.aliased.push((place, target));
        self.locations[location].alias = Some(target);
        self.declared[location].special = proxy != Proxy::Generic;
        Ok(())
    }

    fn qualifiers(&mut self) -> Result<Qualifiers, Error> {
        let mut found = Qualifiers::default();
        loop {
            let dot = self.peek() == Kind::Mark(".");
            let word = match if dot { self.peek_at(1) } else { self.peek() } {
                Kind::Word(word) => word,
                _ if dot => return Err(self.wrong("a type or a state space is wanted behind `.`")),
                _ => return Ok(found),
            };
            // A word alone is a qualifier only if the name follows.
            let named = matches!(self.peek_at(1), Kind::Word(_) | Kind::Mark("*"))
                || (matches!(self.peek_at(1), Kind::Number(_)) && self.peek_at(2) == Kind::Mark(":"));
            if !dot && (!named || matches!(self.peek_at(1), Kind::Word("aliases"))) {
                return Ok(found);
            }
            let c_type = || C_TYPES.iter().find(|(name, _)| *name == word).map(|(_, ty)| *ty);
            match word {
                "global" => found.space = Some(Space::Global),
                "shared" => found.space = Some(Space::Shared),
                "visible" | "extern" | "volatile" => {}
                _ => match type_named(word).or_else(|| if dot { None } else { c_type() }) {
                    Some(ty) => found.ty = Some(ty),
                    None => {
                        let what = format!("`{word}` is neither a type nor a state space of a location");
                        return Err(self.error_at(self.at, what));
                    }
                },
            }
            self.next();
            if dot {
                self.next();
            }
            self.take("*");
        }
    }

    /// A first value; `?` is an unknown one.
    fn initial_value(&mut self) -> Result<Option<Operand>, Error> {
        if self.take("?") {
            return Ok(None);
        }
        if let Some(number) = self.take_number() {
            return Ok(Some(Operand::Const(number)));
        }
        self.take("&");
        let place = self.at;
        let name = self.want_word("a number or a location")?;
        Ok(Some(Operand::Address(self.location_or_used(name, place)?)))
    }

    /// A location whose declaration may follow.
    fn location_or_used(&mut self, name: &str, place: usize) -> Result<usize, Error> {
        if let Some(location) = self.location_named(name) {
            return Ok(location);
        }
        let location = self.add_location(name, place)?;
        self.declared[location].used = true;
        Ok(location)
    }

    /// A location of 8 bytes that are 0.
    pub(super) fn add_location(&mut self, name: &str, place: usize) -> Result<usize, Error> {
        let index = self.locations.len();
        if index >= MOST_LOCATIONS {
            return Err(self.error_at(place, format!("there are more than {MOST_LOCATIONS} locations")));
        }
        self.locations.push(Location {
            name: name.to_owned(),
            space: Space::Global,
            element: 8,
            elements: 1,
            typed: false,
            init: Vec::new(),
            alias: None,
            view: index,
        });
        self.declared.push(Declared::default());
        Ok(index)
    }
}
