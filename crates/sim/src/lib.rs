pub mod capture;
pub mod histogram;
pub mod source;
