mod bounds;
mod desk;
mod lights;
