//! A page for every code: its meaning, an example that has the mistake, and an example without it.
//!
//! Invariant: every code has a page. A test checks that the example under `Wrong` gives exactly this
//! diagnostic, and that the example under `Right` gives none.
//!
//! # Shape
//! A page is Markdown: paragraphs, `## Wrong` and `## Right` each with one fenced text, and a line with the
//! section of the manual. The words after `ptx` on the opening fence configure the check: `gpu-name=sm_60`,
//! or `load` if the mistake is found when the module is loaded.

use super::Code;

impl Code {
    /// The page of this code, without a heading.
    pub const fn page(self) -> &'static str {
        match self {
            Code::UnexpectedCharacter => include_str!("explain/P0001.md"),
            Code::UnterminatedComment => include_str!("explain/P0002.md"),
            Code::UnterminatedString => include_str!("explain/P0003.md"),
            Code::BadNumber => include_str!("explain/P0004.md"),
            Code::UnexpectedToken => include_str!("explain/P0005.md"),
            Code::MissingSemicolon => include_str!("explain/P0006.md"),
            Code::UnbalancedBrace => include_str!("explain/P0007.md"),
            Code::BadPreprocessorLine => include_str!("explain/P0008.md"),
            Code::MacroLimit => include_str!("explain/P0009.md"),
            Code::NotPtx => include_str!("explain/P0010.md"),
            Code::MissingVersion => include_str!("explain/P0101.md"),
            Code::MissingTarget => include_str!("explain/P0102.md"),
            Code::UnknownVersion => include_str!("explain/P0103.md"),
            Code::UnknownTarget => include_str!("explain/P0104.md"),
            Code::MisplacedDirective => include_str!("explain/P0105.md"),
            Code::UnknownDirective => include_str!("explain/P0106.md"),
            Code::Redeclared => include_str!("explain/P0107.md"),
            Code::BadDeclaration => include_str!("explain/P0108.md"),
            Code::BadAlignment => include_str!("explain/P0109.md"),
            Code::BadArray => include_str!("explain/P0110.md"),
            Code::ConflictingDirectives => include_str!("explain/P0111.md"),
            Code::ReservedName => include_str!("explain/P0112.md"),
            Code::TooLarge => include_str!("explain/P0113.md"),
            Code::UnknownInstruction => include_str!("explain/P0201.md"),
            Code::NoSuchForm => include_str!("explain/P0202.md"),
            Code::WrongOperandCount => include_str!("explain/P0203.md"),
            Code::WrongOperandKind => include_str!("explain/P0204.md"),
            Code::WrongOperandType => include_str!("explain/P0205.md"),
            Code::Undeclared => include_str!("explain/P0206.md"),
            Code::WrongStateSpace => include_str!("explain/P0207.md"),
            Code::BadGuard => include_str!("explain/P0208.md"),
            Code::BadAddress => include_str!("explain/P0209.md"),
            Code::ImmediateOutOfRange => include_str!("explain/P0210.md"),
            Code::BadVector => include_str!("explain/P0211.md"),
            Code::BadRegisterUse => include_str!("explain/P0212.md"),
            Code::BadModifierUse => include_str!("explain/P0213.md"),
            Code::UndefinedLabel => include_str!("explain/P0301.md"),
            Code::DuplicateLabel => include_str!("explain/P0302.md"),
            Code::UndeclaredFunction => include_str!("explain/P0303.md"),
            Code::SignatureMismatch => include_str!("explain/P0304.md"),
            Code::BadCallTarget => include_str!("explain/P0305.md"),
            Code::BadCallSequence => include_str!("explain/P0306.md"),
            Code::DefinitionMismatch => include_str!("explain/P0307.md"),
            Code::BadBranchTargets => include_str!("explain/P0308.md"),
            Code::UnresolvedExtern => include_str!("explain/P0309.md"),
            Code::BadConstant => include_str!("explain/P0401.md"),
            Code::BadInitializer => include_str!("explain/P0402.md"),
            Code::DivisionByZero => include_str!("explain/P0403.md"),
            Code::NeedsNewerVersion => include_str!("explain/P0501.md"),
            Code::NeedsNewerTarget => include_str!("explain/P0502.md"),
            Code::RemovedFeature => include_str!("explain/P0503.md"),
            Code::TargetMismatch => include_str!("explain/P0504.md"),
            Code::NotImplemented => include_str!("explain/P0601.md"),
            Code::Deprecated => include_str!("explain/P0901.md"),
            Code::ImmediateTruncated => include_str!("explain/P0902.md"),
            Code::NotPortable => include_str!("explain/P0903.md"),
            Code::Suspicious => include_str!("explain/P0904.md"),
            Code::NonStandard => include_str!("explain/P0905.md"),
            Code::UnusedResult => include_str!("explain/P0906.md"),
            Code::Misaligned => include_str!("explain/P0907.md"),
            Code::FloatRange => include_str!("explain/P0908.md"),
            Code::RegisterSum => include_str!("explain/P0909.md"),
            Code::MissingArguments => include_str!("explain/P0910.md"),
            Code::NegatedSelector => include_str!("explain/P0911.md"),
            Code::MissingFile => include_str!("explain/P0912.md"),
            Code::UnsizedParameter => include_str!("explain/P0913.md"),
        }
    }
}
