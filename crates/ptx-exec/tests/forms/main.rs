//! Which forms are bound (here), properties of every step ([`lanes`]), results of steps ([`values`]), and the
//! steps that can trap ([`traps`]).

mod conversions;
mod lanes;
mod machine;
mod packed;
mod traps;
mod values;

use ptx::isa::RowId;
use ptx_exec::bind::supported;

#[test]
fn everything_of_ptx_6_4_is_bound() {
    let mut unbound = Vec::new();
    for row in RowId::all() {
        let form = row.form();
        if form.gate.ptx.is_some_and(|v| v > ptx::isa::Version::new(6, 4)) {
            continue;
        }
        let all = row.spellings();
        assert!(!all.is_empty(), "`{}` has no spelling", form.row.syntax);
        for mods in all {
            if !supported(row, &mods) {
                unbound.push(format!("{}{mods}", form.mnemonic));
            }
        }
    }
    assert!(
        unbound.is_empty(),
        "{} forms, among them {:#?}",
        unbound.len(),
        &unbound[..unbound.len().min(150)]
    );
}
