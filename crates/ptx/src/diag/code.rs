//! The registry of diagnostic codes. A code is permanent: it is never renumbered and never reused.
//!
//! P00xx text and tokens · P01xx module header, directives and declarations · P02xx instructions and operands
//! · P03xx calls and control flow · P04xx constants and initialisers · P05xx versions and targets · P06xx not
//! implemented · P09xx warnings.

use super::Severity;

macro_rules! codes {
    ($($name:ident = $number:literal, $title:literal;)*) => {
        /// A stable diagnostic code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = $title] $name,)*
        }

        impl Code {
            /// Every code, in order of number.
            pub const ALL: &'static [Code] = &[$(Code::$name),*];

            /// The number: 213 for `P0213`.
            pub const fn number(self) -> u16 {
                match self { $(Code::$name => $number),* }
            }

            /// The subject of the code in a few words.
            pub const fn title(self) -> &'static str {
                match self { $(Code::$name => $title),* }
            }
        }
    };
}

codes! {
    UnexpectedCharacter = 1, "a character that PTX does not use";
    UnterminatedComment = 2, "a block comment without an end";
    UnterminatedString = 3, "a string without an end";
    BadNumber = 4, "a malformed number";
    UnexpectedToken = 5, "an unexpected token";
    MissingSemicolon = 6, "a statement without its semicolon";
    UnbalancedBrace = 7, "braces that do not match";
    BadPreprocessorLine = 8, "a preprocessor line that is not understood";
    MacroLimit = 9, "macros over their limits";
    NotPtx = 10, "a file that is not PTX text";
    MissingVersion = 101, "a module that does not begin with `.version`";
    MissingTarget = 102, "a module without `.target` after `.version`";
    UnknownVersion = 103, "a PTX version that does not exist";
    UnknownTarget = 104, "a target that does not exist";
    MisplacedDirective = 105, "a directive in the wrong place";
    UnknownDirective = 106, "a directive that does not exist";
    Redeclared = 107, "a name declared twice in one scope";
    BadDeclaration = 108, "a declaration that the manual forbids";
    BadAlignment = 109, "an alignment that is not allowed";
    BadArray = 110, "an array with dimensions that are not allowed";
    ConflictingDirectives = 111, "directives that exclude each other";
    ReservedName = 112, "a name that is reserved";
    TooLarge = 113, "a variable or area over its limit";
    UnknownInstruction = 201, "an instruction that does not exist";
    NoSuchForm = 202, "an instruction that has no such form";
    WrongOperandCount = 203, "too few or too many operands";
    WrongOperandKind = 204, "an operand of the wrong kind";
    WrongOperandType = 205, "an operand of the wrong type";
    Undeclared = 206, "a name that is not declared";
    WrongStateSpace = 207, "a variable in the wrong state space";
    BadGuard = 208, "a guard that is not allowed here";
    BadAddress = 209, "an address that cannot be formed";
    ImmediateOutOfRange = 210, "an immediate out of range";
    BadVector = 211, "a vector operand of the wrong shape";
    BadRegisterUse = 212, "a register that cannot be used here";
    BadModifierUse = 213, "a modifier that excludes another or is not allowed here";
    UndefinedLabel = 301, "a label that is not defined";
    DuplicateLabel = 302, "a label defined twice";
    UndeclaredFunction = 303, "a function that is not declared";
    SignatureMismatch = 304, "arguments that do not match the function";
    BadCallTarget = 305, "something that cannot be called";
    BadCallSequence = 306, "parameter passing that the manual forbids";
    DefinitionMismatch = 307, "a definition that differs from its declaration";
    BadBranchTargets = 308, "a branch target list that cannot be used";
    UnresolvedExtern = 309, "an external symbol that nothing defines";
    BadConstant = 401, "a constant expression that cannot be evaluated";
    BadInitializer = 402, "an initialiser that does not fit";
    DivisionByZero = 403, "a division by zero in a constant expression";
    NeedsNewerVersion = 501, "something newer than the module's `.version`";
    NeedsNewerTarget = 502, "something that the target does not have";
    RemovedFeature = 503, "something that this version removed";
    TargetMismatch = 504, "a module for a newer target than the one asked for";
    NotImplemented = 601, "something legal that ptxvm does not implement";
    Deprecated = 901, "a deprecated form";
    ImmediateTruncated = 902, "an immediate that is cut to the type";
    NotPortable = 903, "legal by the manual, but rejected by ptxas";
    Suspicious = 904, "legal but probably not meant";
    NonStandard = 905, "forbidden by the manual, but common and accepted by ptxas";
    UnusedResult = 906, "a result that is overwritten before anything reads it";
    Misaligned = 907, "an access that is misaligned wherever its variable lies";
    FloatRange = 908, "a floating-point constant out of the range of its type";
    RegisterSum = 909, "a register plus a constant as an operand";
    MissingArguments = 910, "a call with results and without a list of arguments";
    NegatedSelector = 911, "a negated predicate in `selp`";
    MissingFile = 912, "a `.loc` whose file is not defined";
    UnsizedParameter = 913, "a parameter without a size whose elements are not bytes";
}

impl Code {
    /// The printed code: `P0213`.
    pub fn name(self) -> String {
        format!("P{:04}", self.number())
    }

    /// Errors refuse the module; codes from 900 on are warnings.
    pub const fn severity(self) -> Severity {
        if self.number() >= 900 { Severity::Warning } else { Severity::Error }
    }
}
