//! From text to facts: syntax, checks, lowering, printing, and what they say about wrong programs.
//!
//! All files are one test program, because each program takes time to compile, to link and to check.

mod analysis;
mod check_module;
mod explain;
#[path = "../support/facts.rs"]
mod facts;
mod findings;
mod format;
#[path = "../support/forms.rs"]
mod forms;
mod inline;
#[path = "../support/language.rs"]
mod language;
mod link;
mod lower;
mod lower_forms;
mod one_mistake;
mod parameters;
mod print;
#[path = "../support/properties.rs"]
mod properties;
mod suggestions;
mod syntax;
mod syntax_properties;
mod syntax_tree;
