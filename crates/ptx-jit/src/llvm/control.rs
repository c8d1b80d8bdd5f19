//! Blocks, branches, phis and returns.

use std::ffi::c_uint;

use super::api::call;
use super::builder::{Builder, NAMELESS, count};
use super::module::{Block, Function, Type, Value, c_name};

/// The likely direction of a branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Likely {
    /// The first successor is likely.
    Yes,
    /// The second successor is likely.
    No,
    /// Unknown.
    Unknown,
}

impl Builder<'_> {
    /// A new block at the end of a function.
    pub(crate) fn append_block(&self, function: Function, name: &str) -> Block {
        let name = c_name(name);
        Block(call!(LLVMAppendBasicBlockInContext(self.module.context, function.value, name.as_ptr())))
    }

    /// A new block of the function that is being emitted.
    pub(crate) fn append_block_here(&self) -> Block {
        let function = call!(LLVMGetBasicBlockParent(self.current_block().0));
        Block(call!(LLVMAppendBasicBlockInContext(self.module.context, function, c"".as_ptr())))
    }

    /// Continues at the end of a block.
    pub(crate) fn position_at_end(&self, block: Block) {
        call!(LLVMPositionBuilderAtEnd(self.raw, block.0));
    }

    /// Continues before the terminator of a block.
    pub(crate) fn position_before_end(&self, block: Block) {
        let end = call!(LLVMGetBasicBlockTerminator(block.0));
        call!(LLVMPositionBuilderBefore(self.raw, end));
    }

    /// Deletes an empty block without predecessors.
    pub(crate) fn delete_block(&self, block: Block) {
        call!(LLVMDeleteBasicBlock(block.0));
    }

    /// Deletes an instruction.
    ///
    /// # Panics
    /// Another instruction uses it, a bug of the caller.
    pub(crate) fn erase(&self, value: Value) {
        assert!(call!(LLVMGetFirstUse(value.0)).is_null(), "ptxvm bug: an instruction is used and erased");
        call!(LLVMInstructionEraseFromParent(value.0));
    }

    /// The current block.
    pub(crate) fn current_block(&self) -> Block {
        Block(call!(LLVMGetInsertBlock(self.raw)))
    }

    /// Whether the current block has a terminator.
    pub(crate) fn is_terminated(&self) -> bool {
        !call!(LLVMGetBasicBlockTerminator(self.current_block().0)).is_null()
    }

    /// Branches to a block.
    pub(crate) fn br(&self, to: Block) {
        call!(LLVMBuildBr(self.raw, to.0));
    }

    /// Branches to `yes` if the condition is one, else to `no`.
    pub(crate) fn cond_br(&self, condition: Value, yes: Block, no: Block, likely: Likely) {
        let branch = call!(LLVMBuildCondBr(self.raw, condition.0, yes.0, no.0));
        let weights = match likely {
            Likely::Yes => [2000, 1],
            Likely::No => [1, 2000],
            Likely::Unknown => return,
        };
        let int = self.int(32);
        let context = self.module.context;
        let mut parts = vec![call!(LLVMMDStringInContext2(context, c"branch_weights".as_ptr(), 14))];
        for weight in weights {
            parts.push(call!(LLVMValueAsMetadata(self.const_int(int, weight).0)));
        }
        let node = call!(LLVMMDNodeInContext2(context, parts.as_mut_ptr(), parts.len()));
        let node = call!(LLVMMetadataAsValue(context, node));
        call!(LLVMSetMetadata(branch, self.profile_kind, node));
    }

    /// Branches to the block of the case that equals the value, else to `default`.
    pub(crate) fn switch(&self, value: Value, default: Block, cases: &[(u64, Block)]) {
        let switch = call!(LLVMBuildSwitch(self.raw, value.0, default.0, count(cases.len())));
        for (number, block) in cases {
            let number = self.const_int(value.ty(), *number);
            call!(LLVMAddCase(switch, number.0, block.0));
        }
    }

    /// A phi; [`Builder::add_incoming`] adds its operands.
    pub(crate) fn phi(&self, ty: Type) -> Value {
        Value(call!(LLVMBuildPhi(self.raw, ty.0, NAMELESS)))
    }

    /// Adds the value that a phi has if the block is entered from `from`.
    pub(crate) fn add_incoming(&self, phi: Value, value: Value, from: Block) {
        debug_assert_eq!(
            phi.ty(),
            value.ty(),
            "a phi of two types: {}, {}",
            phi.describe(),
            value.describe()
        );
        let (mut value, mut from) = (value.0, from.0);
        let one: c_uint = 1;
        call!(LLVMAddIncoming(phi.0, &mut value, &mut from, one));
    }

    /// Returns a value, or nothing.
    pub(crate) fn ret(&self, value: Option<Value>) {
        match value {
            Some(value) => call!(LLVMBuildRet(self.raw, value.0)),
            None => call!(LLVMBuildRetVoid(self.raw)),
        };
    }

    /// Ends the block; control never arrives here.
    pub(crate) fn unreachable(&self) {
        call!(LLVMBuildUnreachable(self.raw));
    }
}
