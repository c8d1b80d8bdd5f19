//! Parses instructions.

use super::lex::Kind;
use super::table::Labels;
use super::{Parser, type_named};
use crate::Error;
use crate::test::{
    Address, AluOp, AtomOp, BarrierKind, Comparison, Op, Operand, Proxy, ProxyFence, ReduceOp, Reduction,
    Reg, Scope, Sem, Space, Type,
};

/// Qualifiers of caches and of arithmetic that have no meaning in the model.
const WITHOUT_EFFECT: &[&str] =
    &["ca", "cg", "cs", "lu", "cv", "wb", "wt", "noftz", "ftz", "lo", "wide", "rn", "to", "aligned", "uni"];

/// An operand, as written.
#[derive(Clone, Debug)]
enum Arg<'t> {
    Value(Operand),
    Name { name: &'t str, percent: bool, offset: i64 },
    Memory(Address),
    List(Vec<Operand>),
}

/// What the words of an opcode say.
#[derive(Default)]
struct Words<'t> {
    sem: Option<&'t str>,
    scope: Option<Scope>,
    space: Option<&'t str>,
    types: Vec<Type>,
    vector: Option<usize>,
    others: Vec<&'t str>,
}

impl<'t> Parser<'t> {
    /// An instruction; `None` for one that does nothing.
    pub(super) fn instruction(
        &mut self,
        thread: usize,
        labels: &mut Labels<'t>,
    ) -> Result<Option<Op>, Error> {
        let place = self.at;
        let mnemonic = self.want_word("an instruction")?;
        let mut words: Vec<&'t str> = Vec::new();
        while matches!(self.peek(), Kind::Mark("." | "::")) {
            self.next();
            words.push(self.want_word("a qualifier")?);
        }
        let op = match mnemonic {
            "ld" | "tld" | "suld" | "cold" => self.load(thread, mnemonic, &words, place)?,
            "st" | "sust" => self.store(thread, mnemonic, &words, place)?,
            "atom" | "suatom" | "red" | "sured" => self.atom(thread, mnemonic, &words, place)?,
            "fence" | "membar" => self.fence(mnemonic, &words, place)?,
            "bar" | "barrier" => self.barrier(thread, mnemonic, &words, place)?,
            "cp" => self.copy(thread, &words, place)?,
            "beq" | "bne" | "blt" | "ble" | "bgt" | "bge" | "goto" | "bra" => {
                self.branch(thread, mnemonic, labels)?
            }
            "exit" | "ret" => Op::Exit,
            "nop" => return Ok(None),
            _ => self.arithmetic(thread, mnemonic, &words, place)?,
        };
        Ok(Some(op))
    }

    /// The comma-separated operands up to the end of the cell.
    fn args(&mut self, thread: usize, place: usize, counts: &[usize]) -> Result<Vec<Arg<'t>>, Error> {
        let mut args = Vec::new();
        if !matches!(self.peek(), Kind::End | Kind::Mark("|" | "||" | ";")) {
            loop {
                args.push(self.arg(thread)?);
                if !self.take(",") {
                    break;
                }
            }
        }
        self.right_number(&args, place, counts)?;
        Ok(args)
    }

    fn right_number(&self, args: &[Arg<'t>], place: usize, counts: &[usize]) -> Result<(), Error> {
        if counts.contains(&args.len()) {
            return Ok(());
        }
        let wanted: Vec<String> = counts.iter().map(ToString::to_string).collect();
        let (wanted, have) = (wanted.join(" or "), args.len());
        Err(self.error_at(place, format!("the instruction has {wanted} operands, and {have} are given")))
    }

    fn arg(&mut self, thread: usize) -> Result<Arg<'t>, Error> {
        if let Some(number) = self.take_number() {
            return Ok(Arg::Value(Operand::Const(number)));
        }
        if self.take("&") {
            let place = self.at;
            let name = self.want_word("a location")?;
            return Ok(Arg::Value(Operand::Address(self.location_or_new(name, place)?)));
        }
        if self.take("{") {
            let mut list = Vec::new();
            loop {
                let arg = self.arg(thread)?;
                list.push(self.value(thread, &arg));
                if self.take("}") {
                    return Ok(Arg::List(list));
                }
                self.want(",")?;
                if list.len() > 8 {
                    return Err(self.wrong("a vector has at most 4 elements, so `}` is wanted"));
                }
            }
        }
        if self.take("[") {
            let place = self.at;
            let base = match self.arg(thread)? {
                Arg::Name { name, percent, offset } => {
                    self.address_of(thread, name, percent, offset, place)?
                }
                Arg::Value(base @ Operand::Address(_)) => Address { base, offset: 0 },
                Arg::Value(_) | Arg::Memory(_) | Arg::List(_) => {
                    return Err(self.error_at(place, "an address is a location or a register".to_owned()));
                }
            };
            self.want("]")?;
            return Ok(Arg::Memory(base));
        }
        let percent = self.token().percent;
        let name = self.want_word("an operand")?;
        let mut offset = 0;
        if self.take("+") || self.peek() == Kind::Mark("-") {
            offset = self.offset()?;
        }
        Ok(Arg::Name { name, percent, offset })
    }

    fn offset(&mut self) -> Result<i64, Error> {
        match self.take_number() {
            Some(number) if (-65_536..=65_536).contains(&number.cast_signed()) => Ok(number.cast_signed()),
            _ => Err(self.wrong("an offset of at most 65536 bytes is wanted")),
        }
    }

    fn location_or_new(&mut self, name: &str, place: usize) -> Result<usize, Error> {
        match self.location_named(name) {
            Some(location) => Ok(location),
            None => self.add_location(name, place),
        }
    }

    /// Whether a name means a register of the thread.
    fn is_register(&self, thread: usize, name: &str, percent: bool) -> bool {
        if self.location_named(name).is_some() {
            return false;
        }
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let numbered = stem.len() < name.len() && ["r", "p", "rd", "rs", "rh", "f", "fd"].contains(&stem);
        percent || numbered || self.threads[thread].registers.iter().any(|register| register == name)
    }

    fn address_of(
        &mut self,
        thread: usize,
        name: &str,
        percent: bool,
        offset: i64,
        place: usize,
    ) -> Result<Address, Error> {
        let base = if self.is_register(thread, name, percent) {
            Operand::Reg(self.register(thread, name))
        } else {
            Operand::Address(self.location_or_new(name, place)?)
        };
        Ok(Address { base, offset })
    }

    /// An operand as an address, with or without brackets.
    fn address(&mut self, thread: usize, arg: &Arg<'t>, place: usize) -> Result<Address, Error> {
        match arg {
            Arg::Memory(address) => Ok(*address),
            Arg::Name { name, percent, offset } => self.address_of(thread, name, *percent, *offset, place),
            Arg::Value(base @ Operand::Address(_)) => Ok(Address { base: *base, offset: 0 }),
            Arg::Value(_) | Arg::List(_) => {
                Err(self.error_at(place, "the address must be a location or a register".to_owned()))
            }
        }
    }

    /// An operand as a value. A name that is no location is a register.
    fn value(&mut self, thread: usize, arg: &Arg<'t>) -> Operand {
        match arg {
            Arg::Value(value) => *value,
            Arg::Name { name, .. } => match self.location_named(name) {
                Some(location) => Operand::Address(location),
                None => Operand::Reg(self.register(thread, name)),
            },
            Arg::Memory(address) => address.base,
            Arg::List(list) => list.first().copied().unwrap_or(Operand::Const(0)),
        }
    }

    fn destination(&mut self, thread: usize, arg: &Arg<'t>, place: usize) -> Result<Reg, Error> {
        match arg {
            Arg::Name { name, offset: 0, .. } if self.location_named(name).is_none() => {
                Ok(self.register(thread, name))
            }
            Arg::Name { name, .. } => {
                Err(self.error_at(place, format!("the destination `{name}` is not a register")))
            }
            Arg::Value(_) | Arg::Memory(_) | Arg::List(_) => {
                Err(self.error_at(place, "the destination must be a register".to_owned()))
            }
        }
    }

    /// Sorts the words of an opcode.
    fn words(&self, words: &[&'t str], place: usize) -> Result<Words<'t>, Error> {
        let mut found = Words::default();
        for word in words {
            match *word {
                "weak" | "relaxed" | "acquire" | "release" | "acq_rel" | "volatile" | "sc" => {
                    if let Some(other) = found.sem.replace(word) {
                        return Err(
                            self.error_at(place, format!("`.{other}` and `.{word}` exclude each other"))
                        );
                    }
                }

                "cta" => found.scope = Some(Scope::Cta),
                "gpu" | "gl" => found.scope = Some(Scope::Gpu),
                "sys" => found.scope = Some(Scope::Sys),
                "cluster" => {
                    return Err(self.error_at(place, "the scope `.cluster` is in neither model".to_owned()));
                }
                "global" | "shared" | "const" | "generic" => found.space = Some(word),
                "v2" => found.vector = Some(2),
                "v4" => found.vector = Some(4),
                _ => match type_named(word) {
                    Some(ty) => found.types.push(ty),
                    None if WITHOUT_EFFECT.contains(word) => {}
                    None => found.others.push(word),
                },
            }
        }
        Ok(found)
    }

    fn refuse_others(&self, mnemonic: &str, words: &Words<'_>, place: usize) -> Result<(), Error> {
        match words.others.first() {
            Some(word) => {
                Err(self.error_at(place, format!("`.{word}` of `{mnemonic}` is not in the format")))
            }
            None => Ok(()),
        }
    }

    fn sem(&self, mnemonic: &str, words: &Words<'_>, allowed: &[&str], place: usize) -> Result<Sem, Error> {
        let wrong = |what: String| Err(self.error_at(place, what));
        let Some(sem) = words.sem else {
            return if words.scope.is_some() {
                wrong(format!("`{mnemonic}` with a scope needs a `.sem` such as `.relaxed`"))
            } else {
                Ok(Sem::Weak)
            };
        };
        if !allowed.contains(&sem) {
            return wrong(format!("`{mnemonic}` cannot be `.{sem}`"));
        }
        match (sem, words.scope) {
            ("weak", None) => Ok(Sem::Weak),
            ("volatile", None) => Ok(Sem::Volatile),
            ("weak" | "volatile", Some(_)) => wrong(format!("`.{sem}` takes no scope")),
            (_, None) => wrong(format!("`.{sem}` needs a scope: `.cta`, `.gpu` or `.sys`")),
            ("acquire", Some(scope)) => Ok(Sem::Acquire(scope)),
            ("release", Some(scope)) => Ok(Sem::Release(scope)),
            ("acq_rel", Some(scope)) => Ok(Sem::AcqRel(scope)),
            (_, Some(scope)) => Ok(Sem::Relaxed(scope)),
        }
    }

    /// Checks the space, and keeps how far an access to a location reaches.
    fn note(
        &mut self,
        address: Address,
        words: &Words<'_>,
        elements: usize,
        place: usize,
    ) -> Result<(), Error> {
        let Operand::Address(location) = address.base else { return Ok(()) };
        if let Some(space) = words.space.filter(|space| *space != "generic") {
            let space = if space == "shared" { Space::Shared } else { Space::Global };
            if !self.declared[location].space {
                self.declared[location].space = true;
                self.locations[location].space = space;
            } else if self.locations[location].space != space {
                let name = &self.locations[location].name;
                return Err(self.error_at(place, format!("`{name}` is declared in another state space")));
            }
        }
        let declared = &mut self.declared[location];
        if let Some(ty) = words.types.first() {
            declared.largest = declared.largest.max(ty.size);
        }
        let size = words.types.first().map_or(8, |ty| ty.size);
        let typed = !words.types.is_empty() || address.offset != 0 || elements > 1;
        if typed && address.offset >= 0 {
            let reach = address.offset as u64 + u64::from(size) * elements as u64;
            declared.reach = declared.reach.max(reach.min(u64::from(super::MOST_BYTES)) as u32);
        }
        Ok(())
    }

    fn load(&mut self, thread: usize, mnemonic: &str, words: &[&'t str], place: usize) -> Result<Op, Error> {
        let (bare, generic) = (words.is_empty() && mnemonic == "ld", mnemonic == "ld");
        let words = self.words(words, place)?;
        self.refuse_others(mnemonic, &words, place)?;
        let args = self.args(thread, place, &[2])?;
        let sem = self.sem(mnemonic, &words, &["weak", "relaxed", "acquire", "volatile"], place)?;
        // In this format, `ld r0, r1` and `ld` of a constant, which can have qualifiers, are moves.
        let moved = match &args[1] {
            Arg::Value(Operand::Const(_)) => generic && words.vector.is_none(),
            Arg::Name { name, percent, .. } => bare && self.is_register(thread, name, *percent),
            Arg::Value(_) | Arg::Memory(_) | Arg::List(_) => false,
        };
        if moved {
            let dst = self.destination(thread, &args[0], place)?;
            return Ok(Op::Mov { dst, src: self.value(thread, &args[1]) });
        }
        let dst = match &args[0] {
            Arg::List(list) => {
                let regs = list.iter().map(|operand| match operand {
                    Operand::Reg(reg) => Some(*reg),
                    Operand::Const(_) | Operand::Address(_) => None,
                });
                regs.collect::<Option<Vec<Reg>>>()
                    .ok_or_else(|| self.error_at(place, "the destinations must be registers".to_owned()))?
            }
            other => vec![self.destination(thread, &other.clone(), place)?],
        };
        self.vector_fits(&words, dst.len(), place)?;
        let address = self.address(thread, &args[1], place)?;
        self.note(address, &words, dst.len(), place)?;
        let proxy = match mnemonic {
            "tld" => Proxy::Texture,
            "suld" => Proxy::Surface,
            "cold" => Proxy::Constant,
            _ if words.space == Some("const") => Proxy::Constant,
            _ => Proxy::Generic,
        };
        Ok(Op::Load { sem, ty: words.types.first().copied(), proxy, dst, address })
    }

    fn vector_fits(&self, words: &Words<'_>, elements: usize, place: usize) -> Result<(), Error> {
        let wanted = words.vector.unwrap_or(1);
        if wanted != elements {
            return Err(
                self.error_at(place, format!("{wanted} elements are wanted, and {elements} are given"))
            );
        }
        let size = words.types.first().map_or(8, |ty| ty.size) as usize;
        if wanted * size > 16 {
            return Err(self.error_at(place, "a vector has at most 128 bits".to_owned()));
        }
        Ok(())
    }

    fn store(&mut self, thread: usize, mnemonic: &str, words: &[&'t str], place: usize) -> Result<Op, Error> {
        let words = self.words(words, place)?;
        self.refuse_others(mnemonic, &words, place)?;
        let args = self.args(thread, place, &[2])?;
        let sem = self.sem(mnemonic, &words, &["weak", "relaxed", "release", "volatile"], place)?;
        let address = self.address(thread, &args[0], place)?;
        let src = match &args[1] {
            Arg::List(list) => list.clone(),
            other => vec![self.value(thread, &other.clone())],
        };
        self.vector_fits(&words, src.len(), place)?;
        self.note(address, &words, src.len(), place)?;
        let proxy = if mnemonic == "sust" { Proxy::Surface } else { Proxy::Generic };
        Ok(Op::Store { sem, ty: words.types.first().copied(), proxy, src, address })
    }

    fn atom(&mut self, thread: usize, mnemonic: &str, words: &[&'t str], place: usize) -> Result<Op, Error> {
        let mut words = self.words(words, place)?;
        let ty = words.types.first().copied();
        let packed = ty.is_some_and(|ty| ty.packed);
        let op = match words.others.first().copied() {
            Some("add") if packed => AtomOp::AddHalf,
            Some("cas") => AtomOp::Cas,
            Some("exch") => AtomOp::Exch,
            Some("inc") => AtomOp::Inc,
            Some("dec") => AtomOp::Dec,
            Some(word) => match alu_named(word) {
                Some(op) if !packed => AtomOp::Alu(op),
                _ => return Err(self.error_at(place, format!("`.{word}` is no operation of `{mnemonic}`"))),
            },
            None => {
                return Err(self.error_at(place, format!("`{mnemonic}` needs an operation such as `.add`")));
            }
        };
        if packed && op != AtomOp::AddHalf {
            return Err(self.error_at(place, "`.f16x2` atomics are additions".to_owned()));
        }
        words.others.remove(0);
        self.refuse_others(mnemonic, &words, place)?;
        let scope = words.scope;
        let sem = match (words.sem, scope) {
            (None, scope) => Sem::Unqualified(scope.unwrap_or(Scope::Gpu)),
            (Some(_), None) => {
                words.scope = Some(Scope::Gpu);
                self.sem(mnemonic, &words, &["relaxed", "acquire", "release", "acq_rel"], place)?
            }
            _ => self.sem(mnemonic, &words, &["relaxed", "acquire", "release", "acq_rel"], place)?,
        };
        let has_dst = matches!(mnemonic, "atom" | "suatom");
        let operands = if op == AtomOp::Cas { 2 } else { 1 };
        if !has_dst && matches!(op, AtomOp::Cas | AtomOp::Exch) {
            return Err(self.error_at(place, format!("`{mnemonic}` has no such operation; `atom` has")));
        }
        let args = self.args(thread, place, &[operands + 1 + usize::from(has_dst)])?;
        let mut rest = args.iter();
        let dst = match rest.next() {
            Some(first) if has_dst => Some(self.destination(thread, first, place)?),
            _ => {
                rest = args.iter();
                None
            }
        };
        let address = match rest.next() {
            Some(arg) => self.address(thread, arg, place)?,
            None => return Err(self.error_at(place, "an address is wanted".to_owned())),
        };
        let args = rest.map(|arg| self.value(thread, arg)).collect();
        self.note(address, &words, 1, place)?;
        let proxy = if mnemonic.starts_with("su") { Proxy::Surface } else { Proxy::Generic };
        Ok(Op::Atom { sem, ty, proxy, op, dst, address, args })
    }

    fn fence(&mut self, mnemonic: &str, words: &[&'t str], place: usize) -> Result<Op, Error> {
        let wrong = |what: String| Err(self.error_at(place, what));
        if let ["proxy", rest @ ..] = words {
            return match rest {
                ["alias"] => Ok(Op::ProxyFence(ProxyFence::Alias)),
                ["generic"] => Ok(Op::ProxyFence(ProxyFence::Proxy(Proxy::Generic))),
                ["constant"] => Ok(Op::ProxyFence(ProxyFence::Proxy(Proxy::Constant))),
                ["texture"] => Ok(Op::ProxyFence(ProxyFence::Proxy(Proxy::Texture))),
                ["surface"] => Ok(Op::ProxyFence(ProxyFence::Proxy(Proxy::Surface))),
                _ => wrong(format!("the proxy fence `.{}` is in neither model", rest.join("."))),
            };
        }
        let found = self.words(words, place)?;
        self.refuse_others(mnemonic, &found, place)?;
        let Some(scope) = found.scope else {
            return wrong(format!("`{mnemonic}` needs a scope: `.cta`, `.gpu` or `.sys`"));
        };
        match found.sem {
            // `membar` is a synonym of `fence.sc` (9.7.12.3).
            None => Ok(Op::Fence { sc: mnemonic == "membar", scope }),
            Some("sc") if mnemonic == "fence" => Ok(Op::Fence { sc: true, scope }),
            Some("acq_rel") if mnemonic == "fence" => Ok(Op::Fence { sc: false, scope }),
            Some(sem) => wrong(format!("`{mnemonic}` cannot be `.{sem}`")),
        }
    }

    /// `bar.cta.sync INSTANCE, ID, COUNT` is the form of this format; `bar.sync ID, COUNT` and `barrier.sync`
    /// that of PTX.
    fn barrier(
        &mut self,
        thread: usize,
        mnemonic: &str,
        words: &[&'t str],
        place: usize,
    ) -> Result<Op, Error> {
        let words: Vec<&str> = words.iter().copied().filter(|word| *word != "aligned").collect();
        if words.as_slice() == ["warp", "sync"] && mnemonic == "bar" {
            return self.warp_sync(thread, place);
        }
        let (own_form, rest) = match (mnemonic, words.as_slice()) {
            ("bar", ["cta", rest @ ..]) => (true, rest),
            (_, ["cta", rest @ ..] | rest) => (false, rest),
        };
        let (kind, op) = match rest {
            ["sync"] => (BarrierKind::Sync, None),
            ["arrive"] => (BarrierKind::Arrive, None),
            ["red", "popc"] | ["red", "popc", "u32"] => (BarrierKind::Sync, Some(ReduceOp::Popc)),
            ["red", "and"] | ["red", "and", "pred"] => (BarrierKind::Sync, Some(ReduceOp::And)),
            ["red", "or"] | ["red", "or", "pred"] => (BarrierKind::Sync, Some(ReduceOp::Or)),
            _ => {
                let words = words.join(".");
                let known = "`.sync`, `.arrive`, `.red.popc.u32`, `.red.and.pred` and `.red.or.pred` are";
                return Err(
                    self.error_at(place, format!("`{mnemonic}.{words}` is not in the format; {known}"))
                );
            }
        };
        let counts: &[usize] = match (own_form, op) {
            (true, None) => &[1, 2, 3],
            (false, None) => &[1, 2],
            (true, Some(_)) => &[3, 4, 5],
            (false, Some(_)) => &[3, 4],
        };
        let (mut args, negated) = self.barrier_args(thread, place, counts, op.is_some())?;
        let mut reduction = None;
        if let Some(op) = op {
            let dst = self.destination(thread, &args.remove(0), place)?;
            if let Some(predicate) = args.pop() {
                let predicate = match self.value(thread, &predicate) {
                    Operand::Address(_) => {
                        return Err(self.error_at(place, "the predicate must be a register".to_owned()));
                    }
                    predicate @ (Operand::Reg(_) | Operand::Const(_)) => (predicate, !negated),
                };
                reduction = Some(Reduction { op, dst, predicate });
            }
        }
        let values: Vec<Operand> = args.iter().map(|arg| self.value(thread, arg)).collect();
        if !own_form {
            let count = values.get(1).copied();
            return Ok(Op::Barrier { kind, instance: 0, id: values[0], count, reduction });
        }
        let instance = match values[0] {
            Operand::Const(number) => number,
            Operand::Reg(_) if values.len() == 1 => 0,
            Operand::Reg(_) | Operand::Address(_) => {
                return Err(self.error_at(place, "the instance of a barrier is a constant".to_owned()));
            }
        };
        let id = values.get(1).copied().unwrap_or(values[0]);
        Ok(Op::Barrier { kind, instance, id, count: values.get(2).copied(), reduction })
    }

    /// The operands of a barrier; of a reduction, the last is a predicate, and the answer whether it is
    /// negated.
    fn barrier_args(
        &mut self,
        thread: usize,
        place: usize,
        counts: &[usize],
        reduces: bool,
    ) -> Result<(Vec<Arg<'t>>, bool), Error> {
        if !reduces {
            return Ok((self.args(thread, place, counts)?, false));
        }
        let mut args = vec![self.arg(thread)?];
        let mut negated = false;
        while self.take(",") {
            if negated {
                return Err(self.error_at(place, "only the last operand can be negated".to_owned()));
            }
            negated = self.take("!");
            args.push(self.arg(thread)?);
        }
        self.right_number(&args, place, counts)?;
        Ok((args, negated))
    }

    /// `bar.warp.sync MASK`.
    fn warp_sync(&mut self, thread: usize, place: usize) -> Result<Op, Error> {
        let args = self.args(thread, place, &[1])?;
        let mask = self.value(thread, &args[0]);
        let least = i64::from(i32::MIN);
        match mask {
            Operand::Const(value) if !(least..=i64::from(u32::MAX)).contains(&value.cast_signed()) => {
                Err(self.error_at(place, format!("the mask {value:#x} has more than 32 bits")))
            }
            Operand::Address(_) => Err(self.error_at(place, "an address is no mask".to_owned())),
            Operand::Const(_) | Operand::Reg(_) => Ok(Op::WarpSync { mask }),
        }
    }

    /// `cp.async`, and its groups.
    fn copy(&mut self, thread: usize, words: &[&'t str], place: usize) -> Result<Op, Error> {
        match words {
            ["async", "commit_group"] => return Ok(Op::CommitGroup),
            ["async", "wait_all"] => return Ok(Op::WaitGroup(None)),
            ["async", "wait_group"] => {
                return match self.take_number() {
                    Some(number) => Ok(Op::WaitGroup(Some(number))),
                    None => Err(self.wrong("a number of groups is wanted")),
                };
            }
            ["async"] | ["async", "ca" | "cg"] | ["async", "ca" | "cg", "shared", "global"] => {}
            _ => {
                let words = words.join(".");
                return Err(self.error_at(place, format!("`cp.{words}` is not in the format; `cp.async` is")));
            }
        }
        let args = self.args(thread, place, &[3])?;
        let to = self.address(thread, &args[0], place)?;
        let from = self.address(thread, &args[1], place)?;
        let bytes = match args[2] {
            Arg::Value(Operand::Const(bytes @ (4 | 8 | 16))) => bytes as u32,
            _ => return Err(self.error_at(place, "a copy has 4, 8 or 16 bytes".to_owned())),
        };
        let ty = Type { size: bytes.min(8), signed: false, packed: false };
        let as_words = Words { types: vec![ty], ..Words::default() };
        for address in [to, from] {
            self.note(address, &as_words, bytes.div_ceil(8) as usize, place)?;
        }
        Ok(Op::Copy { to, from, bytes })
    }

    fn branch(&mut self, thread: usize, mnemonic: &str, labels: &mut Labels<'t>) -> Result<Op, Error> {
        let comparison = match mnemonic {
            "beq" => Some(Comparison::Eq),
            "bne" => Some(Comparison::Ne),
            "blt" => Some(Comparison::Lt),
            "ble" => Some(Comparison::Le),
            "bgt" => Some(Comparison::Gt),
            "bge" => Some(Comparison::Ge),
            _ => None,
        };
        let when = match comparison {
            None => None,
            Some(comparison) => {
                let a = self.arg(thread)?;
                let a = self.value(thread, &a);
                self.want(",")?;
                let b = self.arg(thread)?;
                let b = self.value(thread, &b);
                self.want(",")?;
                Some((comparison, a, b))
            }
        };
        let place = self.at;
        let label = self.want_word("a label")?;
        labels.jumps.push((self.threads[thread].code.len(), label, place));
        Ok(Op::Branch { when, target: 0 })
    }

    fn arithmetic(
        &mut self,
        thread: usize,
        mnemonic: &str,
        words: &[&'t str],
        place: usize,
    ) -> Result<Op, Error> {
        let found = self.words(words, place)?;
        let ty = found.types.last().copied().filter(|ty| !ty.packed).unwrap_or(Type::WORD);
        if mnemonic == "setp" || mnemonic == "set" {
            let comparison = match found.others.first().copied() {
                Some("eq") => Comparison::Eq,
                Some("ne") => Comparison::Ne,
                Some("lt" | "lo") => Comparison::Lt,
                Some("le" | "ls") => Comparison::Le,
                Some("gt" | "hi") => Comparison::Gt,
                Some("ge" | "hs") => Comparison::Ge,
                _ => {
                    return Err(
                        self.error_at(place, format!("`{mnemonic}` needs a comparison such as `.eq`"))
                    );
                }
            };
            let args = self.args(thread, place, &[3])?;
            let dst = self.destination(thread, &args[0], place)?;
            let (a, b) = (self.value(thread, &args[1]), self.value(thread, &args[2]));
            return Ok(Op::Alu { op: AluOp::Compare(comparison), ty, dst, a, b });
        }
        self.refuse_others(mnemonic, &found, place)?;
        if found.sem.is_some() || found.scope.is_some() || found.vector.is_some() {
            return Err(self.error_at(place, format!("`{mnemonic}` takes no memory qualifiers")));
        }
        match mnemonic {
            "mov" | "cvt" | "cvta" => {
                let args = self.args(thread, place, &[2])?;
                let dst = self.destination(thread, &args[0], place)?;
                let src = self.value(thread, &args[1]);
                let narrow = mnemonic == "cvt" && ty.size < 8;
                Ok(if narrow {
                    Op::Alu { op: AluOp::Add, ty, dst, a: src, b: Operand::Const(0) }
                } else {
                    Op::Mov { dst, src }
                })
            }
            "not" | "neg" => {
                let args = self.args(thread, place, &[2])?;
                let dst = self.destination(thread, &args[0], place)?;
                let value = self.value(thread, &args[1]);
                Ok(if mnemonic == "not" {
                    Op::Alu { op: AluOp::Xor, ty, dst, a: value, b: Operand::Const(u64::MAX) }
                } else {
                    Op::Alu { op: AluOp::Sub, ty, dst, a: Operand::Const(0), b: value }
                })
            }
            "selp" => {
                let args = self.args(thread, place, &[4])?;
                let dst = self.destination(thread, &args[0], place)?;
                let p = self.destination(thread, &args[3], place)?;
                Ok(Op::Select { dst, a: self.value(thread, &args[1]), b: self.value(thread, &args[2]), p })
            }
            _ => {
                let Some(op) = alu_named(mnemonic) else {
                    return Err(
                        self.error_at(place, format!("`{mnemonic}` is no instruction of this format"))
                    );
                };
                let args = self.args(thread, place, &[3])?;
                let dst = self.destination(thread, &args[0], place)?;
                Ok(Op::Alu { op, ty, dst, a: self.value(thread, &args[1]), b: self.value(thread, &args[2]) })
            }
        }
    }
}

fn alu_named(name: &str) -> Option<AluOp> {
    Some(match name {
        // The second spellings are those of older tests in this format.
        "add" | "plus" => AluOp::Add,
        "sub" | "minus" => AluOp::Sub,
        "mul" | "mult" => AluOp::Mul,
        "div" => AluOp::Div,
        "rem" => AluOp::Rem,
        "and" => AluOp::And,
        "or" => AluOp::Or,
        "xor" => AluOp::Xor,
        "shl" => AluOp::Shl,
        "shr" => AluOp::Shr,
        "min" => AluOp::Min,
        "max" => AluOp::Max,
        _ => return None,
    })
}
