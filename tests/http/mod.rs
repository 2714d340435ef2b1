mod bounds;
mod class;
mod clients;
mod lights;
mod outer_proxy;
mod strangers;
