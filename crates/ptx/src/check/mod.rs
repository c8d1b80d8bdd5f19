//! Names, declarations, operands, types, calls, versions and constants: from the tree to a checked [`Module`](module::Module).

pub mod module;
