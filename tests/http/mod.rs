mod bounds;
mod desk;
mod lights;
mod outer_proxy;
