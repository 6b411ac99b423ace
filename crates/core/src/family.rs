/// A family of algorithms from which one key of a scenario chooses: one row for each algorithm.
///
/// The rows generate an enum of parameters, the table of the catalogue, and a macro `build` that makes the
/// algorithm with given parameters and evaluates an expression for it, once for each type. A new algorithm is
/// a file, a `mod` line and a row:
///
/// ```text
/// Variant(its parameters), [its entries => default policy], |params, context| how it is built;
/// ```
///
/// Parameters implement `from_args(&EntryArgs)`.
macro_rules! family {
    (
        $d:tt $build:ident
        $(#[$params_doc:meta])* params $params:ident;
        $(#[$table_doc:meta])* table $table:ident;
        $(
            $variant:ident($own:ty), [$($entry:path $(=> $policy:path)?),*],
            |$own_params:pat_param, $context:pat_param| $new:expr;
        )+
    ) => {
        $(#[$params_doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $params {
            $(#[doc = concat!("[`", stringify!($own), "`].")] $variant($own),)+
        }

        impl $params {
            /// The catalogue entry. If a variant has several that differ in defaults, this is the first.
            /// Variants without an entry have none.
            #[must_use]
            pub const fn entry(&self) -> Option<&'static crate::param::Entry> {
                match self {
                    $(Self::$variant(_) => {
                        const ENTRIES: &[&crate::param::Entry] = &[$(&$entry),*];
                        ENTRIES.first().copied()
                    })+
                }
            }
        }

        $(#[$table_doc])*
        pub static $table: &[Known<$params>] = &[$($(
            Known {
                entry: &$entry,
                read: |args| <$own>::from_args(args).map($params::$variant),
                default_policy: [$(Some(&$policy),)? None][0],
            },
        )*)+];

        /// Evaluates one expression for each type.
        macro_rules! $build {
            ($d params:expr, $d context:expr, $d part:ident => $d body:expr) => {
                match $d params {
                    $($params::$variant($own_params) => {
                        let $context = $d context;
                        let $d part = $new;
                        $d body
                    })+
                }
            };
        }
    };
}
