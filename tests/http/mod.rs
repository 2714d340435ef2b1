mod bounds;
mod class;
mod lights;
mod outer_proxy;
