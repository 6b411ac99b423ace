/// A family of parts that one key of a scenario chooses among: one row for each part.
///
/// From the rows come the parameters as an enum, the table of the catalogue, and a macro `build` that makes the part with
/// given parameters and evaluates an expression for it, once for each type of part. A new part is its file, its `mod`
/// line and a row:
///
/// ```text
/// Variant(its parameters), [its entries => default policy], |params, context| how it is built;
/// ```
///
/// Parameters have `from_args(&EntryArgs)`.
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
            /// Its entry: the first, if it has several that differ in defaults; none of what names of other entries make up.
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

        /// The same expression for each part.
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
