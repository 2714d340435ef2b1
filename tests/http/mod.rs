mod bounds;
mod class;
mod desk;
mod lights;
