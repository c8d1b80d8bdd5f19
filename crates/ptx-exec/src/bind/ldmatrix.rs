//! Loads, stores and transposition of 8x8 matrices of 16-bit elements by a warp: `ldmatrix`, `stmatrix`,
//! `movmatrix` (PTX ISA 9.7.14.5 of the current manual).
//!
//! Invariant: as in [`super::matrix`]: all 32 lanes act, and all memory is accessed or none.
//!
//! # Shape
//! Lane l holds elements 2 (l mod 4) and 2 (l mod 4) + 1 of row l / 4, the first in the low half; with
//! `.trans`, of column l / 4.

use super::Missing;
use super::access::space_of;
use super::matrix_operands::whole_warp;
use super::operands::{Bound, Operands};
use crate::bound::Exec;
use crate::lanes::{FULL, LANES, Lane};
use crate::lift::Inputs;
use ptx::isa::{Sem, Slot, Space, Ty, Word, form};

/// The most matrices of one instruction.
const MATRICES: usize = 4;

/// The two elements of a lane, from `element(row, column)`.
fn of_lane(lane: usize, transposed: bool, element: impl Fn(usize, usize) -> u32) -> u32 {
    let at = |i: usize| match (lane / 4, lane % 4 * 2 + i) {
        (line, place) if transposed => element(place, line),
        (line, place) => element(line, place),
    };
    at(0) | at(1) << 16
}

/// The element of a matrix in the registers of a warp.
fn in_warp(register: &Lane<u32>, row: usize, column: usize) -> u32 {
    register.0[row * 4 + column / 2] >> (column % 2 * 16) & 0xffff
}

/// Whether it transposes, and the number of matrices.
fn form(o: &Operands<'_>) -> Result<(bool, usize), Missing> {
    let space = space_of(o, 0);
    if !matches!(space, Space::Generic | Space::Shared) || o.ty()? != Ty::B16 {
        return Err(Missing);
    }
    o.look(|slot, _| matches!(slot, Slot::Shape | Slot::Num));
    let count = usize::from(form::fragment('r', o.mods()).ok_or(Missing)?.registers);
    Ok((o.has(Word::Trans), count))
}

/// `ldmatrix`: lanes 8i to 8i+7 give the addresses of the rows of matrix i, of 16 bytes each.
pub(super) fn load(o: &Operands<'_>) -> Bound {
    let ((transposed, count), space) = (form(o)?, space_of(o, 0));
    let address = o.address(0)?;
    let targets = (0..count).map(|i| o.dst::<u32>(i)).collect::<Result<Vec<_>, _>>()?;
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        whole_warp(exec.mask)?;
        let mut scratch = None;
        let addrs = address.read(Inputs::of(exec), &mut scratch);
        let addrs = Lane(std::array::from_fn(|lane| addrs.at(lane)));
        let mut words = [Lane::splat(0_u32); 4];
        exec.mem.load_vector(space, &addrs, FULL >> (32 - 8 * count), Sem::Weak, words.each_mut())?;
        for (matrix, target) in targets.iter().enumerate() {
            let element = |row: usize, column: usize| {
                words[column / 2].0[matrix * 8 + row] >> (column % 2 * 16) & 0xffff
            };
            let value = Lane(std::array::from_fn(|lane| of_lane(lane, transposed, element)));
            target.write(exec.regs, FULL, &value);
        }
        Ok(())
    }))
}

/// `stmatrix`: the inverse of [`load`].
pub(super) fn store(o: &Operands<'_>) -> Bound {
    let ((transposed, count), space) = (form(o)?, space_of(o, 0));
    let address = o.address(0)?;
    let sources = (1..=count).map(|i| o.src::<u32>(i)).collect::<Result<Vec<_>, _>>()?;
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        whole_warp(exec.mask)?;
        let inputs = Inputs::of(exec);
        let mut scratch = None;
        let addrs = address.read(inputs, &mut scratch);
        let addrs = Lane(std::array::from_fn(|lane| addrs.at(lane)));
        let mut words = [Lane::splat(0_u32); 4];
        for (matrix, source) in sources.iter().enumerate().take(MATRICES) {
            let held = source.get(inputs);
            let element = |row: usize, column: usize| match transposed {
                true => in_warp(&held, column, row),
                false => in_warp(&held, row, column),
            };
            for row in 0..8 {
                for (word, lanes) in words.iter_mut().enumerate() {
                    lanes.0[matrix * 8 + row] = element(row, 2 * word) | element(row, 2 * word + 1) << 16;
                }
            }
        }
        exec.mem.store_vector(space, &addrs, FULL >> (32 - 8 * count), Sem::Weak, words.each_ref())
    }))
}

/// `movmatrix`: transposes the matrix in one register of each lane.
pub(super) fn transpose(o: &Operands<'_>) -> Bound {
    o.look(|slot, word| slot == Slot::Shape || word == Word::Trans);
    if o.ty()? != Ty::B16 {
        return Err(Missing);
    }
    let (d, a) = (o.dst::<u32>(0)?, o.src::<u32>(0)?);
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        whole_warp(exec.mask)?;
        let held = a.get(Inputs::of(exec));
        let value = Lane(std::array::from_fn(|lane: usize| {
            debug_assert!(lane < LANES);
            of_lane(lane, true, |row, column| in_warp(&held, row, column))
        }));
        d.write(exec.regs, FULL, &value);
        Ok(())
    }))
}
