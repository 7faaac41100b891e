//! Methods of builders that set one field.

/// Defines methods that set a field, inside an `impl`: `pub name: Type;` sets the field `name`, and
/// `pub name(given: Type) => field = value;` sets `field` to an expression.
macro_rules! setters {
    () => {};
    ($(#[$meta:meta])* $vis:vis $option:ident: $type:ty; $($rest:tt)*) => {
        setters! { $(#[$meta])* $vis $option($option: $type) => $option = $option; $($rest)* }
    };
    (
        $(#[$meta:meta])*
        $vis:vis $option:ident $(<$generic:ident: $bound:path>)? ($given:ident: $type:ty) => $($field:ident).+ = $value:expr;
        $($rest:tt)*
    ) => {
        $(#[$meta])*
        $vis fn $option $(<$generic: $bound>)? (mut self, $given: $type) -> Self {
            self.$($field).+ = $value;
            self
        }
        setters! { $($rest)* }
    };
}
